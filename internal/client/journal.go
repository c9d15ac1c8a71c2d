package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The times between warnings that no lock can be acquired, and between checks whether locks can be acquired again.
const (
	firstWarning  = time.Second
	longestSilent = time.Minute
	checkPause    = time.Second
)

// A journal writes the log of one client.
type journal struct {
	*dispatch.Queue
	shortage func() []slog.Attr // see Client.shortage

	view func() *admission.View
	addr func(i int) string                                  // returns the name of a master
	info func(i int, st *admission.State) redlockinfo.Master // describes a master in a state

	known      quorum.Set // masters whose first state was handled; only changed uses known and poolClosed
	poolClosed bool

	mu     sync.Mutex
	alarm  *time.Timer   // runs while no lock can be acquired; otherwise nil
	since  time.Time     // when the alarm was first set
	due    time.Time     // when the next warning is due
	pause  time.Duration // between the last warning and the next
	warned bool
	named  quorum.Set // masters that a warning has named
	closed bool

	pending      []slog.Attr // of the first release that was not confirmed in the last second; nil if there is none
	pendingCount int         // number of those releases

	away map[int]*time.Timer // runs for a second after a master was lost; kept until the master is back

	lossy      map[int]string // what was last logged about each master that is declared durable
	lossyTimer *time.Timer    // runs while more is to be logged about them; otherwise nil
}

// A trouble describes masters that grant no locks for the same reason, for the attribute "masters" of a record.
type trouble struct {
	Master string  `json:"master"` // the masters, separated by commas
	State  string  `json:"state"`
	Reason string  `json:"reason"`
	Left   float64 `json:"left,omitempty"` // the longest remaining quarantine, in seconds
}

// String returns the text of t for log handlers that do not write JSON.
func (t trouble) String() string {
	if t.Left > 0 {
		return fmt.Sprintf("%s %s (%vs left): %s", t.Master, t.State, t.Left, t.Reason)
	}
	return fmt.Sprintf("%s %s: %s", t.Master, t.State, t.Reason)
}

// troubles is the value of the attribute "masters". Equal troubles of several masters are joined.
type troubles []trouble

// add adds the trouble of one master.
func (t *troubles) add(one trouble) {
	for i := range *t {
		if same := &(*t)[i]; same.State == one.State && same.Reason == one.Reason {
			same.Master, same.Left = same.Master+", "+one.Master, max(same.Left, one.Left)
			return
		}
	}
	*t = append(*t, one)
}

// String returns the text of t for log handlers that do not write JSON.
func (t troubles) String() string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.String()
	}
	return strings.Join(texts, "; ")
}

// mostReason bounds the text of a reason in the log, in bytes.
const mostReason = 120

// within shortens the reasons so that t has at most n bytes as JSON, if the addresses allow it. Its text is shorter.
func (t troubles) within(n int) troubles {
	size := func() int {
		text, _ := json.Marshal(t) // cannot fail: t has texts and finite numbers
		return len(text)
	}
	for most := mostReason; most > 10 && size() > n; most -= 5 {
		for i := range t {
			t[i].Reason = shortened(strings.TrimSuffix(t[i].Reason, ellipsis), most)
		}
	}
	return t
}

// troubleOf returns the trouble of a master that does not vote.
func troubleOf(m *redlockinfo.Master) trouble {
	t := trouble{Master: m.Addr, State: string(m.State), Left: inSeconds(m.Left), Reason: "it has not answered yet"}
	switch why := admission.WhyQuarantined(m.Err); {
	case why != "" && m.Left > 0: // equal for several masters, so that their records can be joined
		t.Reason = why
	case m.Err != nil:
		t.Reason = diagnose.Why(m)
	}
	t.Reason = shortened(t.Reason, mostReason)
	return t
}

// Shortened returns text, or its beginning, for a record of the log with one long text.
func Shortened(text string) string { return shortened(text, 2*mostReason) }

// shortened returns text, or its first n bytes and an ellipsis.
func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + ellipsis
}

const ellipsis = "..."

// inSeconds returns d in seconds, rounded to milliseconds.
func inSeconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// seconds returns an attribute with d in seconds.
func seconds(key string, d time.Duration) slog.Attr { return slog.Float64(key, inSeconds(d)) }

// master logs a record with the state of one master.
func (j *journal) master(level slog.Level, text string, m *redlockinfo.Master) {
	attrs := []slog.Attr{slog.String("master", m.Addr), slog.String("state", string(m.State))}
	if level > slog.LevelInfo {
		attrs = append(attrs, slog.String("reason", troubleOf(m).Reason))
	}
	if m.Left > 0 {
		attrs = append(attrs, seconds("left", m.Left))
	}
	j.Log(level, text, attrs...)
}

// health logs that a voting master has started or stopped failing.
func (j *journal) health(m *redlockinfo.Master) {
	switch m.State {
	case redlockinfo.StateVoting:
		j.master(slog.LevelInfo, "redlock: master grants locks again", m)
	case redlockinfo.StateFailing:
		j.master(slog.LevelWarn, "redlock: master is failing", m)
	}
}

// changed logs that the state of master i has changed; m describes the state now.
func (j *journal) changed(i int, before, now *admission.State, m *redlockinfo.Master) {
	clock := clockChanged(before, now)
	if clock {
		j.health(m)
	}
	if before.Phase == now.Phase || now.Phase == admission.Connecting {
		return
	}
	switch known := j.known.Has(i); {
	case errors.Is(now.Err, fault.ErrPoolClosed): // then the states of the masters do not matter
		if !j.poolClosed {
			j.poolClosed = true
			j.Log(slog.LevelError, "redlock: pool was closed before its Locker",
				slog.String("hint", "locks can no longer be extended or released: close the Locker first, then the pool"))
		}
	case now.Phase == admission.Down:
		if before.Phase != admission.Connecting { // what was logged is no longer so
			j.back(i)
		}
		j.later(i, *m)
	case j.back(i) && now.Phase == admission.Voting: // it was away for less than a second
	case clock: // the wrong clock of a new voter was logged above
	case (j.wasNamed(i) || known) && m.State == redlockinfo.StateVoting: // a failing one is logged when it grants a lock
		j.master(slog.LevelInfo, "redlock: master votes", m)
	case known && now.Phase != admission.Voting && !admission.EndsSoon(now.Err):
		j.out(m)
	case now.Phase != admission.Voting: // also a master that has never voted for this client
		j.later(i, *m)
	}
	j.known |= quorum.One(i)
}

// wasNamed reports whether a warning that no lock can be acquired has named master i since the last call.
func (j *journal) wasNamed(i int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.named.Has(i)
	j.named &^= quorum.One(i)
	return was
}

// out logs that a master does not vote.
func (j *journal) out(m *redlockinfo.Master) {
	text := "redlock: master does not vote"
	if m.State == redlockinfo.StateDown {
		text = "redlock: master is down"
	}
	j.master(slog.LevelWarn, text, m)
}

// later logs in a second that master i does not vote, with the reason of that moment, unless it votes by then, is no
// longer used, or is named because no lock can be acquired: a server that closes connections, as after a change of
// passwords, is no news. m is its state now, which is logged if the client is connecting again by then.
func (j *journal) later(i int, m redlockinfo.Master) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.away[i] != nil || j.closed {
		return
	}
	j.away[i] = time.AfterFunc(firstWarning, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		v := j.view()
		switch st := &v.Masters[i]; {
		case j.closed || !v.Config.All().Has(i) || st.Phase == admission.Voting:
		case j.alarm != nil && st.Phase != admission.Down: // the alarm names it
			if !j.warned {
				j.away[i].Reset(firstWarning)
			}
		default:
			if st.Phase != admission.Connecting {
				m = j.info(i, st)
			}
			j.out(&m)
		}
	})
}

// back records that master i is not down, and reports whether it was down and nothing was logged about that.
func (j *journal) back(i int) (unnoticed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.away[i]
	delete(j.away, i)
	return t != nil && t.Stop()
}

// unconfirmed logs, a second later, that the release of k was not confirmed. One record tells of all such releases in
// this second, since an outage concerns all of them: it names the first, and has their number as count.
func (j *journal) unconfirmed(k *Lock, err error) {
	reason := Plain(err)
	if e := (*Error)(nil); errors.As(err, &e) && len(e.Failure.Masters) > 0 {
		reason = e.Failure.Reasons()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pendingCount++; j.pending != nil {
		return
	}
	j.pending = []slog.Attr{
		slog.String("lock", k.Name()), slog.Int64("token", k.Token()), slog.String("reason", Shortened(reason)),
	}
	if j.closed {
		j.logPendingLocked()
		return
	}
	time.AfterFunc(firstWarning, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.logPendingLocked()
	})
}

const expires = "nothing is to be done: each name is free when its lease has expired, if not before"

// logPendingLocked logs about the releases that were not confirmed, if there are any.
func (j *journal) logPendingLocked() {
	if j.pending == nil {
		return
	}
	j.Log(slog.LevelWarn, "redlock: releases not confirmed, resending in the background",
		append(j.pending, slog.Int("count", j.pendingCount), slog.String("hint", expires))...)
	j.pending, j.pendingCount = nil, 0
}

// What is logged about masters that are declared durable.
const (
	lossyUnread = "its settings cannot be read"
	lossyBroken = ", but its record calls it durable" // also if this client does not
)

// lossyOf returns what to log about a master that is declared durable, or "".
func lossyOf(st *admission.State) string {
	switch {
	case st.Unverified:
		return lossyUnread
	case errors.Is(st.Err, admission.ErrNotDurable):
		return "it has " + st.Lossy + lossyBroken
	case st.Lossy != "":
		return "it has " + st.Lossy
	}
	return ""
}

// durable makes j log, a second later, which masters are declared durable although their settings contradict, or cannot
// be read. Until then others may follow, which the same record names.
func (j *journal) durable(v *admission.View) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range v.Config.Order {
		if reason := lossyOf(&v.Masters[i]); reason != "" && reason != j.lossy[i] && j.lossyTimer == nil && !j.closed {
			j.lossyTimer = time.AfterFunc(firstWarning, func() {
				j.mu.Lock()
				defer j.mu.Unlock()
				j.logLossyLocked()
			})
		}
	}
}

// logLossyLocked logs about the masters that are declared durable, if the timer runs. It logs the same about a master
// only once.
func (j *journal) logLossyLocked() {
	if j.lossyTimer == nil {
		return
	}
	j.lossyTimer.Stop()
	j.lossyTimer = nil
	v := j.view()
	masters := map[string][]string{} // by reason
	for _, i := range v.Config.Order {
		st := &v.Masters[i]
		reason := lossyOf(st)
		if st.Session == 0 || j.lossy[i] == reason {
			continue
		}
		if j.lossy[i] = reason; reason != "" {
			masters[reason] = append(masters[reason], j.addr(i))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(masters)) {
		text, hint := "redlock: master is declared durable, but is not", "after a restart it is in quarantine"
		switch {
		case reason == lossyUnread:
			text, hint = "redlock: master is declared durable, which cannot be checked", "it is believed"
		case strings.HasSuffix(reason, lossyBroken):
			text, hint = "redlock: master is declared durable, here or by its record, but is not", "it has no vote"
		}
		j.Log(slog.LevelWarn, text, slog.String("master", strings.Join(masters[reason], ", ")),
			slog.String("reason", reason), slog.String("hint", hint+"; a durable master needs appendonly yes, "+
				"appendfsync always and no-appendfsync-on-rewrite no"))
	}
}

// clockChanged reports whether a voting master now has a wrong clock, or no longer has one.
func clockChanged(before, now *admission.State) bool {
	wasOff := before.Phase == admission.Voting && before.ClockOff
	return now.Phase == admission.Voting && now.ClockOff != wasOff
}

// watch sets the alarm if no lock can be acquired, and stops the alarm if locks can be acquired.
func (j *journal) watch() {
	short := j.shortage() != nil
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.alarm != nil && !short:
		j.recoveredLocked()
	case short:
		j.alarmLocked()
	}
}

// starved sets the alarm because a call waits without a quorum. It does not call shortage, which counts the waiting
// calls: in an outage each of them calls starved.
func (j *journal) starved() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alarmLocked()
}

// alarmLocked sets the alarm unless it is set.
func (j *journal) alarmLocked() {
	if j.alarm == nil && !j.closed {
		j.since, j.pause, j.warned = time.Now(), firstWarning, false
		j.due = j.since.Add(j.pause)
		j.alarm = time.AfterFunc(j.pause, j.ring)
	}
}

// recoveredLocked stops the alarm. If a warning was logged, it logs that locks can be acquired again.
func (j *journal) recoveredLocked() {
	j.alarm.Stop()
	j.alarm = nil
	if j.warned {
		j.Log(slog.LevelInfo, "redlock: locks can be acquired again", seconds("for", time.Since(j.since)))
	}
}

// ring logs that no lock can be acquired if a warning is due, and sets the alarm again.
func (j *journal) ring() {
	shortage := j.shortage()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.alarm == nil:
		return
	case shortage == nil:
		j.recoveredLocked()
		return
	}
	j.alarm.Reset(checkPause)
	if time.Now().Before(j.due) {
		return
	}
	j.pause, j.warned = min(2*j.pause, longestSilent), true
	j.due = j.due.Add(j.pause)
	v := j.view()
	j.named |= v.Config.All() &^ v.Voting
	j.Log(slog.LevelWarn, "redlock: no lock can be acquired",
		append([]slog.Attr{seconds("for", time.Since(j.since))}, shortage...)...)
}

// close stops the timers. It logs immediately what is due about releases, and masters that are declared durable.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.logPendingLocked()
	for _, t := range j.away {
		t.Stop()
	}
	j.logLossyLocked()
	if j.alarm != nil {
		j.alarm.Stop()
		j.alarm = nil
	}
}

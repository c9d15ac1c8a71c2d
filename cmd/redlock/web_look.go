package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The intervals and the limits of the page.
const (
	webEvery   = time.Second
	webPause   = 500 * time.Millisecond // between two scans
	webClients = 10 * time.Second       // between two lists of the clients
	webNews    = 40                     // maximum number of events on the page
	webNames   = 200                    // maximum number of names on the page
	webScan    = 100_000                // maximum number of names of a master in one scan
)

// A webState is what the page shows. Durations are in milliseconds.
type webState struct {
	Verdict string      `json:"verdict"`
	Class   string      `json:"class"` // of the verdict: "good", "risk" or "bad"
	CanLock bool        `json:"can_lock"`
	Spare   int         `json:"spare"` // as in the output of status
	Masters []webMaster `json:"masters"`
	Names   []webName   `json:"names"`
	Held    int         `json:"held"`       // number of all names that are held or not certainly free
	Filter  string      `json:"filter"`     // what the viewer searches the names for
	Matches int         `json:"matches"`    // number of all these names that contain Filter; -1 before the first search
	Cut     bool        `json:"cut"`        // a master has more names than webScan
	Scanned int64       `json:"scanned_ms"` // age of the list of names; -1 before the first scan
	News    []webEvent  `json:"news"`
	Clients []webClient `json:"clients"`
	Now     time.Time   `json:"now"` // by the clocks of the masters, for ages
}

// A webClient is a connected client that has a name.
type webClient struct {
	Label string `json:"label"`
	Epoch int64  `json:"epoch"`
	List  string `json:"list"`
	Other bool   `json:"other"` // its list is not the one of this command
	On    int    `json:"on"`    // number of connections
}

type webMaster struct {
	jsonMaster
	Votes bool   `json:"votes"`
	Fix   string `json:"fix,omitempty"`
	webFacts
}

// webFacts is what a master has answered.
type webFacts struct {
	Latency float64          `json:"latency_ms"` // response time of INFO; 0 if the master did not answer
	Used    int64            `json:"used"`       // bytes
	Limit   int64            `json:"limit"`      // bytes; 0 for none
	ahead   time.Duration    // of its clock, by that of this host
	full    bool             // whether it has as many clients as it allows
	refused map[string]int64 // number of refused commands for each error code; nil if the master did not answer
}

type webName struct {
	jsonWho
	Overdue bool `json:"overdue"` // the holder has missed an extension
}

// A webEvent is a loss, a refusal, or a change of a master.
type webEvent struct {
	At    time.Time `json:"at"`
	Class string    `json:"class"` // "good", "risk" or "bad"
	Text  string    `json:"text"`
	Count int64     `json:"count"`
}

// A webLooker reads the state of the deployment for all viewers.
type webLooker struct {
	*client
	ctx      context.Context // ends with the command
	readOnly bool            // send no probe locks
	scanning sync.Mutex
	found    atomic.Pointer[webFound]

	mu      sync.Mutex // guards the following fields
	looked  time.Time
	last    webState              // what was read at looked, with all names
	listed  []string              // the names of the scan at that time
	filters map[string]*webFilter // in use
	sight   map[string]webHold    // by name
	states  map[string]webMaster  // by shard and address
	news    []webEvent            // the newest first
	misfit  error                 // the last result of client.misfit
	users   []webClient           // the clients at that time
	asked   time.Time             // when the clients were listed
}

// webFound is the result of a scan: the names that a quorum holds, and those that are not certainly free.
type webFound struct {
	names []string // sorted
	cut   bool     // a master has more names
	at    time.Time
}

// A webHold is a lock as it was seen last.
type webHold struct {
	redlockinfo.Inspection
	doubt bool          // since then a majority of the masters may have forgotten it
	full  time.Duration // the longest remaining time that was seen, which is about the TTL
	until time.Time     // when the TTL expires
}

// overdue reports whether less than half of the TTL is left: the holder is late, because it should extend the lock
// every third of the TTL. A kept lock is never overdue.
func (h webHold) overdue() bool { return !h.Kept && h.Left < h.full/2 }

func newWebLooker(ctx context.Context, c *client) *webLooker {
	return &webLooker{
		client: c, ctx: ctx, sight: make(map[string]webHold), states: make(map[string]webMaster), news: []webEvent{},
		filters: make(map[string]*webFilter),
	}
}

// state returns the state as JSON, for a viewer with this filter of the names. It reads the masters, unless the last
// state is less than about a second old.
func (w *webLooker) state(filter string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) >= webEvery*9/10 {
		w.look()
	}
	s := w.last
	s.Filter, s.Names = filter, shown(s.Names, filter, w.listed)
	if f := w.filters[filter]; f != nil {
		s.Matches = f.matches
	}
	var text bytes.Buffer
	_ = encode(&text, s) // cannot fail, since it writes to a buffer
	return bytes.TrimSpace(text.Bytes())
}

// look reads the masters and the names.
func (w *webLooker) look() {
	go w.find()
	ctx, cancel := context.WithTimeout(w.ctx, 2*webEvery)
	defer cancel()
	s := webState{Scanned: -1}
	if !w.readOnly {
		w.probe()
	}
	var v redlockinfo.Verdict
	v, s.Masters = w.masters(ctx)
	s.CanLock, s.Spare = v.CanLock, v.Spare
	s.Verdict, s.Class = webVerdict(v)
	if err := w.set.WrongList(); err != nil && !v.CanLock {
		s.Verdict, s.Class = fmt.Sprintf("No lock can be acquired with this list of masters. %v", err), "bad"
	} else if err := w.others(ctx); err != nil {
		s.Verdict, s.Class = fmt.Sprintf("%s. %v", s.Verdict, err), "bad"
	}
	w.listed = nil
	if found := w.found.Load(); found != nil {
		w.listed, s.Cut, s.Scanned = found.names, found.cut, millis(time.Since(found.at))
	}
	s.Held, s.Clients, s.Now = len(w.listed), w.users, time.Now().Add(medianAhead(s.Masters))
	wanted := w.wanted(w.listed)
	w.narrow(wanted, w.listed)
	s.Names = w.holders(ctx, wanted)
	s.News = slices.Clone(w.news)
	w.last, w.looked = s, time.Now()
}

// probe acquires and releases a probe lock, as status does, so that the verdict is that of status.
func (w *webLooker) probe() {
	ctx, cancel := context.WithTimeout(w.ctx, webEvery)
	defer cancel()
	w.set.Probe(ctx)
}

// others returns an error if clients cannot use this list of masters. It lists the clients at most every webClients.
func (w *webLooker) others(ctx context.Context) error {
	if time.Since(w.asked) >= webClients {
		w.misfit, w.asked = w.client.misfit(ctx, ""), time.Now()
		w.users = w.connected(ctx)
	}
	return w.misfit
}

// connected returns the clients that have names and the prefix of this command, sorted by label.
func (w *webLooker) connected(ctx context.Context) []webClient {
	seen := map[webClient]int{}
	for _, p := range w.pools {
		own := p.ClientNames()[0]
		for _, clients := range p.Clients(ctx) {
			for _, c := range clients {
				if c.Named && c.Prefix == own.Prefix {
					seen[webClient{Label: c.Label, Epoch: c.Epoch, List: c.List, Other: c.Shard == own.Shard && c.List != own.List}]++
				}
			}
		}
	}
	list := []webClient{}
	for c, n := range seen {
		c.On = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b webClient) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), cmp.Compare(a.Epoch, b.Epoch), strings.Compare(a.List, b.List))
	})
	return list[:min(len(list), webNames)]
}

// medianAhead returns how far the clock of the median master is ahead of that of this host.
func medianAhead(list []webMaster) time.Duration {
	var all []time.Duration
	for _, m := range list {
		if m.refused != nil { // it has answered
			all = append(all, m.ahead)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// find scans for held names, unless another scan is running or has just ended.
func (w *webLooker) find() {
	if !w.scanning.TryLock() {
		return
	}
	defer w.scanning.Unlock()
	if last := w.found.Load(); last != nil && time.Since(last.at) < webPause {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	scans := w.scan(ctx, "", webScan)
	cut := slices.ContainsFunc(scans, func(m *scanned) bool {
		return errors.Is(m.err, errCutOff) || errors.Is(m.err, context.DeadlineExceeded)
	})
	names := w.possible(scans)
	maps.DeleteFunc(names, func(name string, _ held) bool { return strings.HasPrefix(name, clients.ProbeName) })
	w.found.Store(&webFound{slices.Sorted(maps.Keys(names)), cut, time.Now()})
}

// masters returns the verdict and the masters with data from INFO, and records changes of their states.
func (w *webLooker) masters(ctx context.Context) (v redlockinfo.Verdict, list []webMaster) {
	for _, m := range jsonMasters(admin.Of(w.Locker).Masters()) {
		list = append(list, webMaster{jsonMaster: m})
	}
	var wg sync.WaitGroup
	for k := range list {
		m := &list[k]
		t := w.pools[max(0, m.Shard-1)]
		if i, ok := t.Find(m.Addr); ok && m.State != "down" && m.State != "connecting" {
			wg.Go(func() { m.ask(ctx, t, i) })
		}
	}
	wg.Wait()
	var seen []redlockinfo.Finding // this client is connected, so it does not meet this refusal
	for _, m := range list {
		if m.full {
			seen = append(seen, redlockinfo.Finding{
				Master: m.Addr, Severity: redlockinfo.Warning, About: "clients",
				What: "it has as many clients as it allows (maxclients)", Risk: "it refuses clients that connect now",
				Fix: transport.StepClients,
			})
		}
	}
	v = w.set.Verdict(seen...)
	asked := list
	list = nil
	for _, m := range jsonMasters(v.Masters) { // the states that the verdict is about
		one := webMaster{jsonMaster: m, Votes: m.State == "voting"}
		if k := slices.IndexFunc(asked, func(a webMaster) bool { return a.Addr == m.Addr && a.Shard == m.Shard }); k >= 0 {
			one.webFacts = asked[k].webFacts
		}
		about := func(f redlockinfo.Finding) bool { return f.Master == m.Addr && f.Severity > redlockinfo.Notice }
		if f := slices.IndexFunc(v.Findings, about); f >= 0 {
			one.Fix = v.Findings[f].Fix
			if one.Error == "" || v.Findings[f].NoVote && m.Left == 0 { // without the advice that the error repeats
				one.Error = v.Findings[f].What
			}
			if one.Fix == transport.StepMessage {
				one.Fix = "run `redlock check`, which also reads the settings of the master, and names a step"
			}
		}
		w.compare(one)
		list = append(list, one)
	}
	return v, list
}

// key identifies the master.
func (m *webMaster) key() string { return fmt.Sprint(m.Shard, m.Addr) }

// ask reads the memory use of a master, and its number of refused commands for each error code.
func (m *webMaster) ask(ctx context.Context, t *transport.Transport, i int) {
	began := time.Now()
	stats := info(ctx, t, i, "all") // at one instant
	if stats["used_memory"] == "" {
		return
	}
	m.Latency = float64(time.Since(began).Microseconds()) / 1000
	if at, err := redis.Int64s(ask(ctx, t, i, frame.Command("time", "TIME"))); err == nil && len(at) == 2 {
		m.ahead = time.Until(time.Unix(at[0], at[1]*1000))
	}
	m.Used, _ = strconv.ParseInt(stats["used_memory"], 10, 64)
	m.Limit, _ = strconv.ParseInt(stats["maxmemory"], 10, 64)
	most := transport.Number(stats["maxclients"])
	m.full = most > 0 && transport.Number(stats["connected_clients"]) >= most
	m.refused = make(map[string]int64)
	for key, value := range stats {
		code, counts := strings.CutPrefix(key, "errorstat_")
		if counts && code != "NOSCRIPT" && code != "ERR" { // caused by new scripts and by unknown commands
			n, _ := strconv.ParseInt(strings.TrimPrefix(value, "count="), 10, 64)
			m.refused[code] += n
		}
		if optional.MatchString(key) {
			_, value, _ = strings.Cut(value, "rejected_calls=")
			value, _, _ = strings.Cut(value, ",")
			n, _ := strconv.ParseInt(value, 10, 64)
			m.refused["NOPERM"] -= n
		}
	}
}

// optional matches the statistics of commands that clients try when they connect, and can do without: the documented
// rights do not include them.
var optional = regexp.MustCompile(`^cmdstat_(config|client|acl)`)

// info returns one section of INFO, which is empty if the master does not answer.
func info(ctx context.Context, t *transport.Transport, i int, section string) map[string]string {
	text, _ := redis.String(ask(ctx, t, i, frame.Command("info", "INFO", section)))
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		values[key] = value
	}
	return values
}

// compare records the changes of a master since the last call. What a master refuses without a vote, its state says: it
// also refuses the probe locks of the page.
func (w *webLooker) compare(m webMaster) {
	key := m.key()
	last, known := w.states[key]
	if known && last.State != m.State {
		class := "bad"
		if m.Votes {
			class = "good"
		}
		w.record(class, 0, strings.TrimSuffix(m.Addr+": "+m.State+": "+m.Error, ": "))
	}
	for _, code := range slices.Sorted(maps.Keys(m.refused)) {
		if n := m.refused[code] - last.refused[code]; last.refused != nil && n > 0 && last.Votes && m.Votes {
			w.record("risk", n, m.Addr+" refuses commands of clients: "+code)
		}
	}
	if m.refused == nil { // no answer
		m.webFacts = last.webFacts
	}
	w.states[key] = m
}

// record adds an event to the news. If count > 0, and the news already contain this text, record increases the count of
// that event.
func (w *webLooker) record(class string, count int64, text string) {
	same := func(e webEvent) bool { return count > 0 && e.Text == text }
	if i := slices.IndexFunc(w.news, same); i >= 0 {
		count += w.news[i].Count
		w.news = slices.Delete(w.news, i, i+1)
	}
	w.news = slices.Insert(w.news, 0, webEvent{time.Now(), class, text, count})
	w.news = w.news[:min(len(w.news), webNews)]
}

// holders returns the holders of the given names, and of the names that were held before. It records the locks that
// were lost.
func (w *webLooker) holders(ctx context.Context, names []string) []webName {
	names = slices.AppendSeq(slices.Clone(names), maps.Keys(w.sight))
	slices.Sort(names)
	names = slices.Compact(names)
	now, errs := make([]redlockinfo.Inspection, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	few := make(chan struct{}, 16)
	for i, name := range names {
		few <- struct{}{}
		wg.Go(func() {
			now[i], errs[i] = w.Inspect(ctx, name)
			<-few
		})
	}
	wg.Wait()
	list := make([]webName, 0, len(names))
	for i, name := range names {
		last := w.sight[name]
		seen := webHold{Inspection: now[i], full: now[i].Left, until: time.Now().Add(now[i].Left)}
		switch {
		case errs[i] != nil: // the holder is unknown, so show the last state
			seen = last
		case last.ID == seen.ID:
			seen.full = max(seen.full, last.full)
		case last.ID != "" && last.overdue() && time.Now().After(last.until):
			w.record("bad", 0, fmt.Sprintf("%q was lost: %q did not extend it in time, token %d", name, last.Label, last.Token))
		case last.ID != "" && last.doubt && seen.ID != last.ID && !unknown(&seen.Inspection):
			w.record("bad", 0, fmt.Sprintf("%q was lost in a restart of the masters, unless %q had unlocked it, token %d", name,
				last.Label, last.Token))
		}
		if w.sight[name] = seen; seen.Free && seen.WaiterCount == 0 {
			delete(w.sight, name)
			continue
		}
		if last.ID != "" && unknown(&seen.Inspection) { // report a loss when it is certain
			last.doubt = true
			w.sight[name] = last
		}
		list = append(list, webName{newJSONWho(name, seen.Inspection), seen.overdue()})
	}
	return list
}

// webVerdict returns a text that says whether locks can be acquired, and how many more masters may fail. The text
// describes the set of masters with the fewest to spare.
func webVerdict(v redlockinfo.Verdict) (text, class string) {
	q := slices.MinFunc(v.Quorums, func(a, b redlockinfo.Quorum) int { return a.Spare() - b.Spare() })
	text, class = q.String(), "good"
	if q.Shard > 0 {
		text = fmt.Sprintf("in shard %d %s", q.Shard, text)
	}
	for _, other := range v.Quorums {
		if other.Able < other.N {
			class = "risk"
		}
	}
	switch {
	case !v.CanLock:
		return "No lock can be acquired: " + text, "bad"
	case v.Spare == 0:
		return fmt.Sprintf("Locks can be acquired: %s, so none of them may fail", text), class
	}
	return fmt.Sprintf("Locks can be acquired: %s, so %d of them may fail", text, v.Spare), class
}

package walkthroughs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// The report of a walkthrough has one line for each message and its reply. Masters with the same message and reply
// are grouped.

const prefix = scripts.Prefix(scripts.DefaultPrefix)

// An entry is one event.
type entry struct {
	at     time.Duration
	who    string // name of the client
	master int    // number of the master; 0 for none
	what   string
	answer string // reply of the master; "" for a message of the master to the client
}

// log records an entry with the current time. The caller must hold the scenario's mu.
func (w *scenario) log(e entry) {
	e.at = w.now()
	w.news = append(w.news, e)
}

// report returns the entries since the last report as text.
func (w *scenario) report() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.news, func(a, b entry) int { // actions of several clients at one instant have no fixed order
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.master, b.master), cmp.Compare(a.who, b.who),
			cmp.Compare(a.what, b.what))
	})
	var b strings.Builder
	for len(w.news) > 0 {
		first, on := w.news[0], []int(nil)
		w.news = slices.DeleteFunc(w.news, func(e entry) bool {
			master := e.master
			e.at, e.master = e.at.Truncate(time.Millisecond), min(e.master, 1)
			same := e == entry{first.at.Truncate(time.Millisecond), first.who, min(first.master, 1), first.what, first.answer}
			if same {
				on = append(on, master)
			}
			return same
		})
		text := first.who + " " + first.what
		switch {
		case first.answer != "":
			text = first.who + " to " + mastersText(on) + ": " + first.what + " -> " + first.answer
		case first.master > 0:
			text = mastersText(on) + " to " + first.who + ": " + first.what
		}
		b.WriteString(wrap(seconds(first.at)+" "+text) + "\n")
	}
	return b.String()
}

// mastersText names masters, for example "master 3" or "masters 1-3 5".
func mastersText(on []int) string {
	slices.Sort(on)
	text := "masters"
	if len(on) == 1 {
		text = "master"
	}
	for i := 0; i < len(on); i++ {
		text += fmt.Sprint(" ", on[i])
		last := i
		for last+1 < len(on) && on[last+1] <= on[last]+1 {
			last++
		}
		if on[last] > on[i] {
			text += fmt.Sprint("-", on[last])
		}
		i = last
	}
	return text
}

// wrap breaks a long line between words.
func wrap(text string) string {
	const width = 112
	lines, line := "", ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+len(word) > width {
			lines, line = lines+line+"\n", "       "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return lines + line
}

// seconds formats a time or a duration of the walkthrough, to the millisecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Truncate(time.Millisecond).Seconds(), 'f', 3, 64)
}

// ballot formats a ballot as a time of the walkthrough, or as a number if it is not a time of the walkthrough.
func (w *scenario) ballot(us int64) string {
	since := us - w.start.UnixMicro()
	if since < 0 || since > 1e12 {
		return strconv.FormatInt(us, 10)
	}
	return strconv.FormatFloat(float64(since)/1e6, 'f', 6, 64)
}

var address = regexp.MustCompile(`master-(\d+):6379`)

// plainly returns the text of an error in which addresses are replaced by the masters' names.
func plainly(err error) string {
	return address.ReplaceAllString(strings.TrimPrefix(err.Error(), "redlock: "), "master $1")
}

// nameAll gives short names to the ids in a message of p: A1 is the first lease of client A, wA1 its first waiter.
// The caller must hold the scenario's mu.
func (w *scenario) nameAll(p *client, args []string) {
	s := scriptOf(args)
	if s == scripts.Acquire || s == scripts.Extend {
		w.nameOne(p.name, arg(args, 2))
	}
	if s == scripts.Acquire && arg(args, 7) == "acquire" {
		w.nameOne("w"+p.name, arg(args, 8))
	}
}

func (w *scenario) nameOne(stem, id string) {
	if id == "" || w.short[id] != "" {
		return
	}
	n := 1
	for _, short := range w.short {
		if strings.TrimRight(short, "0123456789") == stem {
			n++
		}
	}
	w.short[id] = fmt.Sprint(stem, n)
}

func (w *scenario) name(id string) string { return w.short[id] }

// scriptOf returns the script that a command runs, or nil if it runs none.
func scriptOf(args []string) *frame.Script {
	for _, s := range scripts.All {
		if len(args) > 3 && (args[0] == "EVALSHA" && s.SHA == args[1] || args[0] == "EVAL" && s.Text == args[1]) {
			return s
		}
	}
	return nil
}

// arg returns ARGV[n] of a script, or "" if the script has fewer arguments.
func arg(args []string, n int) string {
	keys, _ := strconv.Atoi(args[2])
	if 2+keys+n >= len(args) {
		return ""
	}
	return args[2+keys+n]
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// ttl formats the time that a lease lasts, given the life of its key: the key outlives the lease, for the fence.
func ttl(life string) string {
	return (time.Duration(number(life))*time.Millisecond - scripts.FenceKept).String()
}

func lockName(key string) string {
	return strings.TrimSuffix(strings.TrimPrefix(key, string(prefix)+":{"), "}")
}

// logHint records a wake-up.
func (w *scenario) logHint(l *link, payload string) {
	h, _ := prefix.ParseWakeUp(payload)
	what := h.Name + " is free, and " + w.name(h.Waiter) + " is first"
	if h.Lease != "" {
		what = "check " + w.name(h.Lease) + " of " + h.Name
	}
	w.log(entry{who: l.p.name, master: l.master, what: what})
}

// logMessage records a message and the reply of a master, unless the message does not affect locks.
func (w *scenario) logMessage(l *link, args []string, reply any) {
	e := entry{who: l.p.name, master: l.master}
	switch scriptOf(args) {
	case scripts.Acquire:
		e.what, e.answer = w.acquireWords(args), w.voteWords(reply, "granted")
	case scripts.Extend:
		e.what, e.answer = w.extendWords(args), w.voteWords(reply, "done")
	case scripts.Release:
		e.what, e.answer = w.releaseWords(args, reply)
	case scripts.Admit:
		if e.what = admitWords[arg(args, 1)]; e.what == "" {
			return
		}
		e.answer = w.admittedWords(reply)
	default:
		if args[0] != "SUBSCRIBE" {
			return
		}
		e.what, e.answer = "subscribe to its inbox", "done"
	}
	w.log(e)
}

func (w *scenario) acquireWords(args []string) string {
	first, last, mode := number(arg(args, 4)), number(arg(args, 5)), cmp.Or(arg(args, 7), "acquire")
	ballot := w.ballot(first)
	if mode == "repair" { // two rounds at one instant may each send one, with ballots that differ by a microsecond
		ballot = seconds(time.Duration(first-w.start.UnixMicro()) * time.Microsecond)
	}
	text := fmt.Sprintf("%s %s for %s, %s, ballot %s",
		mode, lockName(args[3]), w.name(arg(args, 2)), ttl(arg(args, 3)), ballot)
	if last > first {
		text += " to " + w.ballot(last)
	}
	switch {
	case mode == "acquire" && arg(args, 8) != "":
		text += ", waiter " + w.name(arg(args, 8))
	case mode == "repair":
		text += ", token " + w.ballot(number(strings.Fields(arg(args, 6))[1]))
	}
	return text
}

func (w *scenario) extendWords(args []string) string {
	return "extend " + lockName(args[3]) + " for " + w.name(arg(args, 2)) + " by " + ttl(arg(args, 3))
}

// voteWords describes the vote in a reply; yes is the description of a granted vote.
func (w *scenario) voteWords(reply any, yes string) string {
	if e, ok := reply.(redis.Error); ok {
		return "error " + string(e)
	}
	v, err := scripts.DecodeVote(reply)
	place := ""
	if v.Place >= 0 {
		place = fmt.Sprintf("; place %d in the queue", v.Place+1)
	}
	switch {
	case err != nil:
		return err.Error()
	case v.Outcome == quorum.Granted:
		return yes
	case v.Free:
		return "free, but another waiter is first for " + seconds(v.Left) + place
	case v.Outcome == quorum.Held:
		return "held by " + w.name(v.Holder) + " for " + seconds(v.Left) + place
	case v.Outcome == quorum.Stale && v.Fence == 0:
		return "stale, the ballot is too old" + place
	case v.Outcome == quorum.Stale:
		return "stale, the fence is " + w.ballot(v.Fence) + place
	case v.Outcome == quorum.Abstained:
		return "no vote: " + w.recordWords(v.Record)
	}
	return v.Outcome.String() + place
}

func (w *scenario) releaseWords(args []string, reply any) (what, answer string) {
	var grants []string
	for n := 1; arg(args, n) != ""; n++ {
		grants = append(grants, w.name(arg(args, n)))
		n = max(n, 7)
	}
	what = "release " + lockName(args[3])
	if len(grants) > 0 {
		what += " of " + strings.Join(grants, " and ")
	}
	if ballot := number(arg(args, 2)); ballot > 0 {
		what += ", fence " + w.ballot(ballot)
	}
	if waiter := arg(args, 5); waiter != "" {
		what += ", waiter " + w.name(waiter) + map[bool]string{true: " leaves", false: " stays"}[arg(args, 6) == ""]
	}
	switch {
	case reply == int64(1):
		return what, "deleted"
	case reply == int64(0) && len(grants) == 0:
		return what, "done"
	case reply == int64(0):
		return what, "not found"
	}
	return what, fmt.Sprint("error ", reply)
}

// admitWords describes the steps of an admission that write the record.
var admitWords = map[string]string{
	"start": "begin a quarantine", "end": "end the quarantine", "now": "admit immediately",
	"settle": "settle the max TTL", "epoch": "write the epoch", "rewrite": "rewrite the record",
}

func (w *scenario) admittedWords(reply any) string {
	a, err := scripts.DecodeAdmission(reply)
	if err != nil {
		return fmt.Sprint("error ", reply)
	}
	return map[scripts.AdmitResult]string{
		scripts.AdmitOtherIdentity: "refused, the server has another incarnation",
		scripts.AdmitTooEarly:      "refused, too early",
		scripts.AdmitOtherRecord:   "refused, the record has changed",
		scripts.AdmitDone:          "done",
		scripts.AdmitClockDiffers:  "refused, the clock is wrong",
		scripts.AdmitOtherMasters:  "refused, the record has other masters",
	}[a.Result] + ": " + w.recordWords(a.Record)
}

// recordWords describes an admission record.
func (w *scenario) recordWords(text string) string {
	r, err := scripts.ParseRecord(text)
	switch {
	case text == "":
		return "no admission record"
	case err != nil:
		return err.Error()
	}
	state := map[bool]string{true: "admitted", false: "in quarantine"}[r.Admitted]
	epoch := ""
	if r.Epoch > 0 {
		epoch = fmt.Sprint(", epoch ", r.Epoch)
	}
	if r.Final > r.Epoch {
		epoch += fmt.Sprint(", final from ", r.Final)
	}
	since := w.ballot(r.Since)
	if point := strings.IndexByte(since, '.'); point > 0 { // to the millisecond: the rest depends on the messages
		since = since[:point+4]
	}
	return fmt.Sprintf("%s since %s, %d masters%s, max TTL %v, quarantine %v",
		state, since, 1+strings.Count(r.Masters, ","), epoch, r.MaxTTL, r.Quarantine)
}

package stories

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// How a story tells what happened: one line for each message and its answer, with the masters that were asked the same
// and answered the same put together.

const prefix = scripts.Prefix(redlock.DefaultPrefix)

// An entry is one thing that happened.
type entry struct {
	at     time.Duration
	who    string
	master int // 0: none
	hint   bool
	what   string
	answer string
}

// log takes down an entry, with the time. The world's lock is held.
func (w *world) log(e entry) {
	e.at = w.now()
	w.news = append(w.news, e)
}

// tell writes what is new.
func (w *world) tell() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.news, func(a, b entry) int { // what a program does at one instant has no order
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.master, b.master), cmp.Compare(a.who, b.who),
			cmp.Compare(a.what, b.what))
	})
	var b strings.Builder
	for len(w.news) > 0 {
		first := w.news[0]
		var on []int
		w.news = slices.DeleteFunc(w.news, func(e entry) bool {
			same := e.at/time.Millisecond == first.at/time.Millisecond && e.who == first.who && e.hint == first.hint &&
				e.what == first.what && e.answer == first.answer && (e.master == 0) == (first.master == 0)
			if same {
				on = append(on, e.master)
			}
			return same
		})
		b.WriteString(wrap(first.text(on)) + "\n")
	}
	return b.String()
}

func (e *entry) text(on []int) string {
	at := seconds(e.at) + " "
	switch {
	case e.hint:
		return at + mastersText(on) + " to " + e.who + ": " + e.what
	case e.master == 0:
		return at + e.who + " " + e.what
	}
	return at + e.who + " to " + mastersText(on) + ": " + e.what + " -> " + e.answer
}

// mastersText names masters: "master 3", "masters 1-3 5".
func mastersText(on []int) string {
	slices.Sort(on)
	if len(on) == 1 {
		return fmt.Sprint("master ", on[0])
	}
	text := "masters"
	for i := 0; i < len(on); {
		j := i
		for j+1 < len(on) && on[j+1] <= on[j]+1 {
			j++
		}
		text += fmt.Sprint(" ", on[i])
		if on[j] > on[i] {
			text += fmt.Sprint("-", on[j])
		}
		i = j + 1
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

// seconds writes a time of the story, or a span, to the millisecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Truncate(time.Millisecond).Seconds(), 'f', 3, 64)
}

// ballot writes a ballot as the time of the story that it is.
func (w *world) ballot(us int64) string {
	since := us - w.start.UnixMicro()
	switch {
	case us == 0:
		return "none"
	case since < -1e12 || since > 1e12:
		return strconv.FormatInt(us, 10)
	}
	return strconv.FormatFloat(float64(since)/1e6, 'f', 6, 64)
}

// names are the short names of ids: A1 is the first grant of program A, wA1 its first waiter.
type names struct {
	short map[string]string
	count map[string]int
}

func newNames() names { return names{short: map[string]string{}, count: map[string]int{}} }

// learn gives names to what a message of p brings up. The world's lock is held.
func (n *names) learn(p *program, m *message) {
	s := scriptOf(m.args)
	give := func(id, kind string) {
		if id != "" && n.short[id] == "" {
			n.count[kind+p.name]++
			n.short[id] = fmt.Sprint(kind, p.name, n.count[kind+p.name])
		}
	}
	switch {
	case s == scripts.Acquire && arg(m.args, 5) == "acquire":
		give(arg(m.args, 1), "")
		give(arg(m.args, 6), "w")
	case s == scripts.Acquire, s == scripts.Extend:
		give(arg(m.args, 1), "")
	}
}

func (n *names) of(id string) string {
	if short := n.short[id]; short != "" {
		return short
	}
	if strings.Contains(id, "gone-") {
		return "dead ones"
	}
	if strings.HasPrefix(id, "stranger") {
		return "a stranger"
	}
	return "?"
}

// scriptOf is the script that a command runs; nil where it is none.
func scriptOf(args []string) *scripts.Script {
	for _, s := range scripts.All {
		if len(args) > 3 && (args[0] == "EVALSHA" && s.SHA == args[1] || args[0] == "EVAL" && s.Text == args[1]) {
			return s
		}
	}
	return nil
}

// arg is one of a script's arguments, counted from 0; "" where it has fewer.
func arg(args []string, n int) string {
	keys, _ := strconv.Atoi(args[2])
	if 3+keys+n >= len(args) {
		return ""
	}
	return args[3+keys+n]
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func lockName(key string) string {
	return strings.TrimSuffix(strings.TrimPrefix(key, string(prefix)+":{"), "}:lock")
}

// logMessage takes down a message that a master has answered. Only what matters to locks is told.
func (w *world) logMessage(l *link, m *message, reply any) {
	what, answer := "", ""
	switch s := scriptOf(m.args); s {
	case scripts.Acquire:
		what, answer = w.acquireWords(m.args), w.voteWords(reply, "granted")
	case scripts.Extend:
		what, answer = w.extendWords(m.args), w.voteWords(reply, "done")
	case scripts.Release:
		what, answer = w.releaseWords(m.args, reply)
	case scripts.Admit:
		if arg(m.args, 0) == "read" {
			return
		}
		what, answer = w.admitWords(m.args, reply)
	default:
		if m.args[0] != "SUBSCRIBE" {
			return
		}
		what, answer = "subscribe to its inbox", "done"
	}
	w.log(entry{who: l.p.name, master: l.master, what: what, answer: answer})
}

func millis(text string) string { return (time.Duration(number(text)) * time.Millisecond).String() }

func (w *world) acquireWords(args []string) string {
	id, first, last, mode := arg(args, 1), number(arg(args, 3)), number(arg(args, 4)), arg(args, 5)
	text := mode + " " + lockName(args[3]) + " for " + w.names.of(id) + ", " + millis(arg(args, 2)) + ", ballot " +
		w.ballot(first)
	if last > first {
		text += " to " + w.ballot(last)
	}
	switch {
	case mode == "acquire" && arg(args, 6) != "":
		text += ", waiter " + w.names.of(arg(args, 6))
	case mode == "repair":
		text += ", token " + w.ballot(number(arg(args, 7)))
	case mode == "import":
		text += ", in the place of " + w.names.of(arg(args, 7))
	}
	return text
}

func (w *world) extendWords(args []string) string {
	text := lockName(args[3]) + " for " + w.names.of(arg(args, 1))
	depth := ", depth " + arg(args, 3)
	switch {
	case arg(args, 2) == "0":
		return "keep " + text + depth
	case depth == ", depth 1":
		depth = ""
	}
	return "extend " + text + " by " + millis(arg(args, 2)) + depth
}

// voteWords puts a vote into words.
func (w *world) voteWords(reply any, yes string) string {
	if e, ok := reply.(wireError); ok {
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
	case v.Kind == scripts.Granted:
		return yes
	case v.Kind == scripts.Held && v.Free:
		return "free, but another waiter is first for " + seconds(v.Left) + place
	case v.Kind == scripts.Held:
		return "held by " + w.names.of(v.Holder) + " for " + seconds(v.Left) + place
	case v.Kind == scripts.Stale && v.Fence == 0:
		return "stale, its ballot is long past" + place
	case v.Kind == scripts.Stale:
		return "stale, the fence is " + w.ballot(v.Fence) + place
	case v.Kind == scripts.Abstained:
		return "no vote: " + w.recordWords(v.Record)
	case v.Kind == scripts.Refused:
		return "refused: " + w.recordWords(v.Record)
	}
	return v.Kind.String() + place
}

func (w *world) releaseWords(args []string, reply any) (what, answer string) {
	var grants []string
	for n := 5; arg(args, n) != ""; n++ {
		grants = append(grants, w.names.of(arg(args, n)))
	}
	what = "release " + lockName(args[3])
	if len(grants) > 0 {
		what += " of " + strings.Join(grants, " and ")
	}
	if ballot := number(arg(args, 0)); ballot > 0 {
		what += ", fence " + w.ballot(ballot)
	}
	if waiter := arg(args, 2); waiter != "" && arg(args, 3) == "" {
		what += ", waiter " + w.names.of(waiter) + " leaves"
	} else if waiter != "" {
		what += ", waiter " + w.names.of(waiter) + " stays"
	}
	switch {
	case reply == int64(1):
		return what, "deleted"
	case reply != int64(0):
		return what, fmt.Sprint("error ", reply)
	case len(grants) == 0:
		return what, "done"
	}
	return what, "was not there"
}

func (w *world) admitWords(args []string, reply any) (what, answer string) {
	what = map[string]string{
		"start": "begin a quarantine", "end": "end the quarantine", "now": "admit at once",
		"guard": "raise the guard time", "settle": "settle the guard time", "epoch": "raise the epoch",
		"rewrite": "rewrite the record",
	}[arg(args, 0)]
	a, err := scripts.DecodeAdmission(reply)
	if err != nil {
		return what, fmt.Sprint("error ", reply)
	}
	return what, map[scripts.AdmitResult]string{
		scripts.AdmitOtherIdentity: "not done, it is another server now", scripts.AdmitTooEarly: "not done, too early",
		scripts.AdmitOtherRecord: "not done, the record has changed", scripts.AdmitDone: "done",
		scripts.AdmitClockDiffers: "not done, the clock is wrong",
	}[a.Result] + ": " + w.recordWords(a.Record)
}

// recordWords puts an admission record into words.
func (w *world) recordWords(text string) string {
	r, err := scripts.ParseRecord(text)
	switch {
	case text == "":
		return "no admission record"
	case err != nil:
		return err.Error()
	}
	state := "in quarantine"
	if r.Admitted {
		state = "admitted"
	}
	return fmt.Sprintf("%s since %s, one of %d, longest TTL %v, quarantine %v",
		state, w.ballot(r.Since), r.N, r.Longest, r.Quarantine)
}

func (w *world) hintWords(payload string) string {
	h, ok := prefix.ParseHint(payload)
	if !ok {
		return "what is no hint"
	}
	return h.Name + " is free, and " + w.names.of(h.Waiter) + " is first"
}

var master = regexp.MustCompile(`master-(\d+):6379`)

// clean is the text of an error with the names of the story.
func (w *world) clean(err error) string {
	return master.ReplaceAllString(strings.TrimPrefix(err.Error(), "redlock: "), "master $1")
}

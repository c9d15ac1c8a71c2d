package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// An entry is one event of the transcript. It is formatted only if the transcript is printed.
type entry struct {
	at             time.Duration
	client, master int8   // -1 for none
	what, name, by string // by is the lease or waiter that causes a refusal
	n              int64
	code           int64
	message        bool
	err            error
}

// note records a fault, or an action of a client. The caller must hold simulation.mu.
func (w *simulation) note(client, master int, what, name string, n int64) {
	w.record(entry{at: w.since(w.start), client: int8(client), master: int8(master), what: what, name: name, n: n})
}

// record records an event that is not a message, and passes the event to the observer.
func (w *simulation) record(e entry) {
	w.log = append(w.log, e)
	w.seen.saw(&e, len(w.voters()))
}

func (w *simulation) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problemLocked(format, args...)
}

func (w *simulation) problemLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.problems = append(w.problems, text)
	w.log = append(w.log, entry{at: w.since(w.start), client: -1, master: -1, what: "VIOLATION: " + text})
}

func (e *entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12.6f ", e.at.Seconds())
	if e.client >= 0 {
		fmt.Fprintf(&b, "client %d ", e.client)
	}
	if e.master >= 0 {
		if e.client >= 0 {
			b.WriteString("at ")
		}
		fmt.Fprintf(&b, "master %d ", e.master)
	}
	b.WriteString(e.what)
	if e.name != "" {
		b.WriteString(" " + e.name)
	}
	switch {
	case e.message:
		if e.n != 0 {
			fmt.Fprintf(&b, " with %d", e.n)
		}
		b.WriteString(": " + answer(e.what, e.code))
		if e.by != "" {
			b.WriteString(" by " + e.by)
		}
	case strings.HasSuffix(e.what, " for"), strings.HasSuffix(e.what, " by"), strings.HasSuffix(e.what, " in"):
		b.WriteString(" " + time.Duration(e.n).String())
	case e.n != 0:
		b.WriteString(" " + strconv.FormatInt(e.n, 10))
	}
	if e.err != nil {
		fmt.Fprintf(&b, ": %.300v", e.err)
	}
	return b.String()
}

// answer describes the code of a master's reply to the message what.
func answer(what string, code int64) string {
	switch {
	case code < 0:
		return "an error"
	case what == leaves || what == joins:
		return "done"
	case what == scripts.Release.Name && code == 1:
		return "deleted"
	case what == scripts.Release.Name:
		return "not found"
	case what == scripts.Admit.Name || what == scripts.Inspect.Name:
		return "reply " + strconv.FormatInt(code, 10)
	}
	return quorum.Outcome(code).String()
}

// Transcript returns all events as text, one per line.
func (r *Result) Transcript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s\n", r.Seed, r.plan.String())
	for i := range r.log {
		b.WriteString(r.log[i].String())
		b.WriteByte('\n')
	}
	return b.String()
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

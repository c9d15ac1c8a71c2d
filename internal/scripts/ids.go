package scripts

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxLabel is the length of the longest label, in bytes: it stands in every grant and in every waiter of a queue.
const MaxLabel = 64

// CheckLabel reports what is wrong with the label that people know an owner by, or nil.
func CheckLabel(label string) error {
	switch {
	case len(label) > MaxLabel:
		return fmt.Errorf("the label has %d bytes; %d are the most (it begins %q)", len(label), MaxLabel, label[:MaxLabel])
	case strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the label %q has a control character", label)
	}
	return nil
}

// GrantID is the id of a grant: <owner>:<number>:<label>. In this package owner always means the UUID of a Locker. The
// number is the grant's among those of its owner; the label is for people. An id is never used twice.
func GrantID(owner string, number uint64, label string) string {
	b := append(make([]byte, 0, 128), owner...)
	b = strconv.AppendUint(append(b, ':'), number, 10)
	return string(append(append(b, ':'), label...))
}

// timeDigits is how many digits the time has that a waiter's id begins with: those of a time in microseconds until the
// year 2286. So the order of the ids as texts is the order of their times.
const timeDigits = 16

// A Ticket is the place of one waiter among all: first by priority, the higher first, then by the masters' time of its
// call, then by its id. It is the same on all masters.
type Ticket struct {
	waiter string
	rank   int64
}

// NewTicket makes the ticket of an owner's waiter number number. at is the masters' time of its call, in microseconds.
func NewTicket(owner string, number uint64, label string, at int64, priority int) *Ticket {
	id := fmt.Sprintf("%0*d:%s", timeDigits, min(max(at, 0), MaxBallot), GrantID(owner, number, label))
	return &Ticket{id, -int64(priority)}
}

// Waiter is the waiter's id: <time of call, 16 digits>:<owner>:<number>:<label>.
func (t *Ticket) Waiter() string { return t.waiter }

// GrantLabel returns the owner and the label that the id of a grant or of a waiter ends with. Both are "" where it is
// no such id.
func GrantLabel(id string) (owner, label string) {
	_, owner, _, label, ok := cutID(id)
	if !ok {
		return "", ""
	}
	return owner, label
}

// cutID cuts the id of a grant or of a waiter into its parts. timed reports whether it is a waiter's: it has a time.
func cutID(id string) (timed bool, owner string, number uint64, label string, ok bool) {
	if len(id) > timeDigits && id[timeDigits] == ':' && strings.Trim(id[:timeDigits], "0123456789") == "" {
		timed, id = true, id[timeDigits+1:]
	}
	owner, rest, _ := strings.Cut(id, ":")
	text, label, ok := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(text, 10, 64)
	return timed, owner, number, label, ok && err == nil && strconv.FormatUint(number, 10) == text
}

// A Hint is what a waiter's inbox gets: on one master the name is free, and this waiter is the first. It is not a vote,
// and believing a false one costs a round.
type Hint struct {
	Waiter string
	Number uint64 // the waiter's among those of its owner
	Name   string
}

// ParseHint reads what an inbox got, and reports whether it is a hint for a lock of p. The scripts publish the waiter's
// id, a newline, and the lock's key.
func (p Prefix) ParseHint(payload string) (Hint, bool) {
	waiter, key, _ := strings.Cut(payload, "\n")
	timed, _, number, _, ok := cutID(waiter)
	name, ours := strings.CutPrefix(key, string(p)+":{")
	name, whole := strings.CutSuffix(name, "}:lock")
	if !timed || !ok || !ours || !whole || CheckName(name) != nil {
		return Hint{}, false
	}
	return Hint{Waiter: waiter, Number: number, Name: name}, true
}

// Ticket is the ticket of the waiter, good for leaving the queue.
func (h Hint) Ticket() *Ticket { return &Ticket{waiter: h.Waiter} }

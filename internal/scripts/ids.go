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

// AppendGrantID appends the id of a grant to b: <owner>:<number>:<label>. The owner is a UUID, the number is the
// grant's among those of its owner. An id is never used twice.
func AppendGrantID(b []byte, owner string, number uint64, label string) []byte {
	b = append(append(b, owner...), ':')
	b = append(strconv.AppendUint(b, number, 10), ':')
	return append(b, label...)
}

// timeDigits is how many digits the time has that a waiter's id begins with: those of a time in microseconds until the
// year 2286. So the order of the ids as texts is the order of their times.
const timeDigits = 16

// A Ticket is the place of one waiter among all: first by priority, the higher first, then by the masters' time of its
// call, then by its id. It is the same on all masters.
type Ticket struct {
	waiter, rank any
	text         string
}

// NewTicket makes the ticket of an owner's waiter number number. at is the masters' time of its call, in microseconds.
func NewTicket(owner string, number uint64, label string, at int64, priority int) *Ticket {
	b := fmt.Appendf(nil, "%0*d:", timeDigits, min(max(at, 0), MaxBallot))
	text := string(AppendGrantID(b, owner, number, label))
	return &Ticket{waiter: text, rank: -int64(priority), text: text}
}

// Waiter is the waiter's id: <time of call, 16 digits>:<owner>:<number>:<label>.
func (t *Ticket) Waiter() string { return t.text }

// GrantLabel returns the owner and the label that the id of a grant or of a waiter ends with. Both are "" where it is
// no such id.
func GrantLabel(id string) (owner, label string) {
	owner, _, label, ok := cutID(withoutTime(id))
	if !ok {
		return "", ""
	}
	return owner, label
}

// withoutTime cuts the time off a waiter's id.
func withoutTime(id string) string {
	if isTime(id) {
		return id[timeDigits+1:]
	}
	return id
}

// isTime reports whether an id begins with a time, as a waiter's does.
func isTime(id string) bool {
	return len(id) > timeDigits && id[timeDigits] == ':' && strings.Trim(id[:timeDigits], "0123456789") == ""
}

// cutID cuts an id into its parts.
func cutID(id string) (owner string, number uint64, label string, ok bool) {
	owner, rest, ok1 := strings.Cut(id, ":")
	text, label, ok2 := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(text, 10, 64)
	ok = ok1 && ok2 && err == nil && strconv.FormatUint(number, 10) == text
	return owner, number, label, ok
}

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
	return grantID(owner, number, "", label)
}

// ShareID is the id of a grant in a role, made at a time of the masters in microseconds. That of a reader or a writer
// tells both: <owner>:<number>r<time>:<label>, and with a w.
func ShareID(owner string, number uint64, role Role, at int64, label string) string {
	if role == Plain {
		return GrantID(owner, number, label)
	}
	return grantID(owner, number, role.mark()+strconv.FormatInt(min(max(at, 0), MaxBallot), 10), label)
}

func grantID(owner string, number uint64, mark, label string) string {
	b := append(make([]byte, 0, 128), owner...)
	b = append(strconv.AppendUint(append(b, ':'), number, 10), mark...)
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

// NewTicket makes the ticket of an owner's waiter number number, for a role. at is the masters' time of its call, in
// microseconds.
func NewTicket(role Role, owner string, number uint64, label string, at int64, priority int) *Ticket {
	id := fmt.Sprintf("%0*d:%s", timeDigits, min(max(at, 0), MaxBallot), grantID(owner, number, role.mark(), label))
	return &Ticket{id, -int64(priority)}
}

// Waiter is the waiter's id: <time of call, 16 digits>:<owner>:<number>:<label>, with the mark of its role behind the
// number.
func (t *Ticket) Waiter() string { return t.waiter }

// GrantLabel returns the owner and the label that the id of a grant or of a waiter ends with. Both are "" where it is
// no such id.
func GrantLabel(id string) (owner, label string) {
	p, ok := cutID(id)
	if !ok {
		return "", ""
	}
	return p.owner, p.label
}

// ShareOf returns the role of the id of a grant or a waiter, and of a share the masters' time of the ask that won it,
// in microseconds; 0 where it does not tell.
func ShareOf(id string) (role Role, since int64) {
	p, _ := cutID(id)
	return p.role, p.since
}

// parts are what the id of a grant or of a waiter says.
type parts struct {
	timed        bool // it is a waiter's: it begins with a time
	owner, label string
	number       uint64
	role         Role
	since        int64
}

// cutID cuts the id of a grant or of a waiter into its parts, and reports whether it is one.
func cutID(id string) (p parts, ok bool) {
	if len(id) > timeDigits && id[timeDigits] == ':' && strings.Trim(id[:timeDigits], "0123456789") == "" {
		p.timed, id = true, id[timeDigits+1:]
	}
	owner, rest, _ := strings.Cut(id, ":")
	text, label, ok := strings.Cut(rest, ":")
	p.owner, p.label = owner, label
	for _, role := range []Role{Reader, Writer} {
		number, since, marked := strings.Cut(text, role.mark())
		if !marked {
			continue
		}
		text, p.role = number, role
		if !p.timed {
			at, err := strconv.ParseInt(since, 10, 64)
			p.since, since = at, strings.TrimPrefix(since, strconv.FormatInt(at, 10))
			ok = ok && err == nil && at >= 0
		}
		ok = ok && since == ""
	}
	number, err := strconv.ParseUint(text, 10, 64)
	p.number = number
	return p, ok && err == nil && strconv.FormatUint(number, 10) == text
}

// A Hint is what a waiter's inbox gets: on one master the name is free, and this waiter is the first. It is not a vote,
// and believing a false one costs a round.
type Hint struct {
	Waiter string
	Number uint64 // the waiter's among those of its owner
	Name   string
	Role   Role
	// Probe: the name is not free. The message only asks whether the waiter still waits.
	Probe bool
}

// ParseHint reads what an inbox got, and reports whether it is a hint for a lock of p. The scripts publish the waiter's
// id, a newline, and the lock's key; behind a probe there is one more newline.
func (p Prefix) ParseHint(payload string) (Hint, bool) {
	waiter, key, _ := strings.Cut(payload, "\n")
	key, probe := strings.CutSuffix(key, "\n")
	of, ok := cutID(waiter)
	name, ours := strings.CutPrefix(key, string(p)+":{")
	name, whole := strings.CutSuffix(name, "}")
	if !of.timed || !ok || !ours || !whole || CheckName(name) != nil {
		return Hint{}, false
	}
	return Hint{Waiter: waiter, Number: of.number, Name: name, Role: of.role, Probe: probe}, true
}

// Ticket is the ticket of the waiter, good for leaving the queue.
func (h Hint) Ticket() *Ticket { return &Ticket{waiter: h.Waiter} }

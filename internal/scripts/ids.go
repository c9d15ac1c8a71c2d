package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redlock-go/redlock/internal/frame"
)

// MaxLabel is the maximum length of a label in bytes: the ids of leases and of waiters contain it.
const MaxLabel = 64

// CheckLabel returns an error if label, the human-readable name of an owner, is invalid.
func CheckLabel(label string) error {
	switch {
	case len(label) > MaxLabel:
		return fmt.Errorf("the label has %d bytes, the maximum is %d (it begins with %q)",
			len(label), MaxLabel, label[:MaxLabel])
	case strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the label %q contains a control character", label)
	case !utf8.ValidString(label):
		return fmt.Errorf("the label %q is not UTF-8", label)
	}
	return nil
}

// LeaseID returns the id of a lease: <owner>:<number>:<label>. In this package, owner always means the UUID of a
// Locker. The owner gives each lease a new number; the label is for people. An id is never used twice.
func LeaseID(owner string, number uint64, label string) string {
	return newID(owner, number, "", label)
}

// ShareID returns the id of a lease in a role. since is the masters' time in microseconds. The id of a reader or a
// writer contains the role and the time: <owner>:<number>r<time>:<label>, or w instead of r.
func ShareID(owner string, number uint64, role Role, since int64, label string) string {
	if role == Plain {
		return LeaseID(owner, number, label)
	}
	return newID(owner, number, role.mark()+strconv.FormatInt(min(max(since, 0), MaxBallot), 10), label)
}

func newID(owner string, number uint64, mark, label string) string {
	b := append(make([]byte, 0, 128), owner...)
	b = append(strconv.AppendUint(append(b, ':'), number, 10), mark...)
	return string(append(append(b, ':'), label...))
}

// timeDigits is the number of digits of the time at the start of a waiter's id: enough for microseconds until the year
// 2286. So the order of the ids as texts is the order of their times.
const timeDigits = 16

// A Ticket determines the place of a waiter in the queue. Waiters are ordered by priority, the highest first, then by
// the masters' time of their calls, then by their ids. This order is the same on all masters.
type Ticket struct {
	waiter string
	rank   int64
}

// Is reports whether t is the ticket of the waiter with this id. t may be nil.
func (t *Ticket) Is(waiter string) bool { return t != nil && t.waiter == waiter }

// NewTicket returns the ticket of an owner's waiter with this number, for a role. called is the masters' time of the
// waiting call, in microseconds.
func NewTicket(role Role, owner string, number uint64, label string, called int64, priority int) *Ticket {
	id := fmt.Sprintf("%0*d:%s", timeDigits, min(max(called, 0), MaxBallot), newID(owner, number, role.mark(), label))
	return &Ticket{id, -int64(priority)}
}

// Waiter returns the waiter's id: <time of call, 16 digits>:<owner>:<number>:<label>, with the mark of its role after
// the number.
func (t *Ticket) Waiter() string { return t.waiter }

// LeaseLabel returns the owner and the label in the id of a lease or of a waiter. Both are "" if id is not such an id.
func LeaseLabel(id string) (owner, label string) {
	found, ok := cutID(id)
	if !ok {
		return "", ""
	}
	return found.owner, found.label
}

// ShareOf returns the role in the id of a lease or a waiter, and for a share the masters' time of the acquire that won
// it, in microseconds, or 0 if the id does not contain that time.
func ShareOf(id string) (role Role, since int64) {
	found, _ := cutID(id)
	return found.role, found.since
}

// parts holds the parts of the id of a lease or of a waiter.
type parts struct {
	timed        bool // whether the id begins with a time: a waiter's id
	owner, label string
	number       uint64
	role         Role
	since        int64
}

// cutID splits the id of a lease or of a waiter into its parts, and reports whether id is such an id.
func cutID(id string) (found parts, ok bool) {
	if len(id) > timeDigits && id[timeDigits] == ':' && strings.Trim(id[:timeDigits], "0123456789") == "" {
		found.timed, id = true, id[timeDigits+1:]
	}
	owner, rest, _ := strings.Cut(id, ":")
	text, label, ok := strings.Cut(rest, ":")
	found.owner, found.label = owner, label
	for _, role := range []Role{Reader, Writer} {
		number, since, marked := strings.Cut(text, role.mark())
		if !marked {
			continue
		}
		text, found.role = number, role
		if !found.timed {
			at, err := strconv.ParseInt(since, 10, 64)
			found.since, since = at, strings.TrimPrefix(since, strconv.FormatInt(at, 10))
			ok = ok && err == nil && at >= 0
		}
		ok = ok && since == ""
	}
	number, err := strconv.ParseUint(text, 10, 64)
	found.number = number
	return found, ok && err == nil && strconv.FormatUint(number, 10) == text
}

// A WakeUp is a message to an inbox, for a waiter or about a lease. It is not a vote: a wrong wake-up costs one round.
//
// A message for a waiter says that on one master the name is free and the waiter is the first. A message about a lease
// says that another client wants the name, or may hold it already, so the owner of the lease should check the lease. If
// Release is set, another client also requests that the lock be unlocked.
type WakeUp struct {
	Waiter string // "" in a message about a lease
	Lease  string // the id of the lease, or ""
	Number uint64 // the number that the owner has given to the waiter
	Name   string
	Role   Role
	// Probe reports whether the message only tests if the waiter still listens, although the name is not free.
	Probe   bool
	Release bool // whether another client requests the release; only in a message about a lease
	// Forced is the label of the client that has taken the lease by force; "" in other messages.
	Forced string
}

// releaseMark ends a message that requests a release.
const releaseMark = "\nrelease"

// Notify encodes a message to the owner of a lease with this id: see [WakeUp]. The reply is the number of subscribers
// that received it.
func (p Prefix) Notify(k *Keys, id string, release bool) *frame.Call {
	owner, _ := LeaseLabel(id)
	payload := id + "\n" + k.lock
	if release {
		payload += releaseMark
	}
	return frame.Command("notify", "PUBLISH", p.Inbox(owner), payload)
}

// forcedMark precedes the quoted label of the client that has taken a lease by force.
const forcedMark = "\nforced "

// NotifyForced is Notify for a lease that the client with this label has taken by force.
func (p Prefix) NotifyForced(k *Keys, id, label string) *frame.Call {
	if label == "" {
		return p.Notify(k, id, false)
	}
	owner, _ := LeaseLabel(id)
	return frame.Command("notify", "PUBLISH", p.Inbox(owner), id+"\n"+k.lock+forcedMark+strconv.Quote(label))
}

// cutForced cuts the forcedMark and the label from the end of a message.
func cutForced(key string) (rest, label string) {
	i := strings.LastIndex(key, forcedMark)
	if i < 0 {
		return key, ""
	}
	quoted := key[i+len(forcedMark):]
	label, err := strconv.Unquote(quoted)
	if err != nil || label == "" || strconv.Quote(label) != quoted {
		return key, ""
	}
	return key[:i], label
}

// ParseWakeUp parses a message of an inbox, and reports whether it is a wake-up for a lock of p. A message consists of
// the id of the waiter or the lease, a newline, and the lock's key; a probe ends with one more newline, and a request
// to release ends with releaseMark, and a message about a forced release with forcedMark and a label.
func (p Prefix) ParseWakeUp(payload string) (WakeUp, bool) {
	id, key, _ := strings.Cut(payload, "\n")
	key, probe := strings.CutSuffix(key, "\n")
	key, release := strings.CutSuffix(key, releaseMark)
	key, forced := cutForced(key)
	parsed, ok := cutID(id)
	name, ours := p.NameOf(key)
	if !ok || !ours || probe && (release || !parsed.timed) ||
		(release || forced != "") && parsed.timed || release && forced != "" {
		return WakeUp{}, false
	}
	if !parsed.timed {
		return WakeUp{Lease: id, Name: name, Role: parsed.role, Release: release, Forced: forced}, true
	}
	return WakeUp{Waiter: id, Number: parsed.number, Name: name, Role: parsed.role, Probe: probe}, true
}

// Ticket returns the ticket of the waiter, which is sufficient to leave the queue.
func (wake WakeUp) Ticket() *Ticket { return &Ticket{waiter: wake.Waiter} }

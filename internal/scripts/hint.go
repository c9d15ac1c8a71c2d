package scripts

import "strings"

// A Hint is what a waiter's inbox gets: on one master the name is free, and this waiter is the first. It is not a vote,
// and believing a false one costs a round.
type Hint struct {
	Waiter string
	Number uint64 // the waiter's among those of its owner
	Name   string
}

// ParseHint reads what an inbox got, and reports whether it is a hint for a lock of p. The scripts publish the waiter's
// id, a newline, and the lock's key.
func (p Prefix) ParseHint(payload string) (h Hint, ok bool) {
	waiter, key, ok := strings.Cut(payload, "\n")
	if !ok || !isTime(waiter) {
		return Hint{}, false
	}
	_, number, _, ok := cutID(withoutTime(waiter))
	name, ours := strings.CutPrefix(key, string(p)+":{")
	name, whole := strings.CutSuffix(name, "}:lock")
	if !ok || !ours || !whole || CheckName(name) != nil {
		return Hint{}, false
	}
	return Hint{Waiter: waiter, Number: number, Name: name}, true
}

// Ticket is the ticket of the waiter, good for leaving the queue.
func (h Hint) Ticket() *Ticket { return &Ticket{waiter: h.Waiter, text: h.Waiter} }

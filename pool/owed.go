package pool

import (
	"maps"
	"slices"
	"sync"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The bounds of what is owed to one master.
const (
	maxOwed       = 65536    // names
	maxOwedGrants = 8192     // grants of one name
	maxOwedBytes  = 64 << 20 // as OwedRelease.bytes counts them
	paidGrants    = 1024     // grants of one payment; Lua's unpack has a limit of about 8000
	payWindow     = 64       // payments under way at once, so that none gets older than the timeout
)

// An OwedRelease is a release that a master still has to get: it could not be delivered, or may not have been.
type OwedRelease struct {
	Name   string   // what is released; a master is owed one release for each
	Grants []string // the ids of the grants that end
	Ballot int64    // the largest that the grants have sent
	// CallFunc encodes the release of some of the grants, and names no waiter: late, it would put back one that has gone.
	// Of merged releases the first one counts. It must not block.
	CallFunc func(grants []string, ballot int64) *scripts.Call
}

// bytes returns about how much memory r keeps: its texts, and what the list and CallFunc need for each name.
func (r *OwedRelease) bytes() int {
	n := 512 + 2*len(r.Name)
	for _, id := range r.Grants {
		n += 16 + len(id)
	}
	return n
}

// A ledger is what one master is owed. All methods are safe for concurrent use, and none waits.
type ledger struct {
	mu     sync.Mutex
	closed bool
	owed   map[string]OwedRelease
	bytes  int      // of all in owed
	due    []string // names that are still to be paid in this turn
	paying int
}

// owe books r, and reports whether it did.
func (l *ledger) owe(r OwedRelease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	grants, before := slices.Clone(r.Grants), 0
	known, merged := l.owed[r.Name]
	if merged {
		before = known.bytes()
		grants = slices.DeleteFunc(grants, func(id string) bool { return slices.Contains(known.Grants, id) })
		grants = append(known.Grants, grants...)
		r.CallFunc, r.Ballot = known.CallFunc, max(known.Ballot, r.Ballot)
	}
	r.Grants = grants
	more := r.bytes() - before
	if l.closed || len(grants) > maxOwedGrants || !merged && len(l.owed) == maxOwed || l.bytes+more > maxOwedBytes {
		return false
	}
	l.bytes += more
	if l.owed == nil {
		l.owed = make(map[string]OwedRelease)
	}
	l.owed[r.Name] = r
	return true
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owed)
}

// close forgets everything.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.owed, l.due, l.bytes = true, nil, nil, 0
}

// begin starts a turn, in which all is paid that is owed now, unless one is under way.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paying == 0 && len(l.due) == 0 {
		l.due = slices.Sorted(maps.Keys(l.owed))
	}
}

// settled reports whether no turn is under way.
func (l *ledger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paying == 0 && len(l.due) == 0
}

// stop ends a turn, of which some payments may be under way.
func (l *ledger) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = nil
}

// next begins the next payment of the turn, where there is one and the window has room: a release, or a part of it.
func (l *ledger) next() (p OwedRelease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) == 0 || l.paying == payWindow {
		return p, false
	}
	p = l.owed[l.due[0]]
	l.due = l.due[1:]
	p.Grants = slices.Clone(p.Grants[:min(len(p.Grants), paidGrants)])
	l.paying++
	return p, true
}

// paid books the end of a payment. What was added while it was under way is paid by another of the same turn.
func (l *ledger) paid(p OwedRelease, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paying--
	known, there := l.owed[p.Name]
	switch {
	case !there || !done:
		return
	case known.Ballot > p.Ballot: // all grants again, with the larger ballot: repeating a release is harmless
	case len(known.Grants) > len(p.Grants):
		l.bytes -= known.bytes()
		known.Grants = slices.Clone(known.Grants[len(p.Grants):])
		l.bytes += known.bytes()
		l.owed[p.Name] = known
	default:
		l.bytes -= known.bytes()
		delete(l.owed, p.Name)
		return
	}
	l.due = append(l.due, p.Name)
}

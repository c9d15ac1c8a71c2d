package transport

import (
	"maps"
	"slices"
	"sync"

	"github.com/redlock-go/redlock/internal/frame"
)

// Bounds of the pending releases of one master.
const (
	maxPending       = 65536    // names
	maxPendingLeases = 8192     // leases per name
	maxPendingBytes  = 64 << 20 // as PendingRelease.bytes estimates them
	leasesPerCall    = 1024     // leases per release call; Lua's unpack has a limit of about 8000
	resendWindow     = 1024     // leases whose releases are in flight, so that none gets older than the timeout
)

// A PendingRelease is a release that a master has not received, or may not have received.
type PendingRelease struct {
	Name   string   // the lock name; a master has one pending release per name
	Leases []string // the ids of the leases to release
	Ballot int64    // the largest ballot that the leases have sent
	// CallFunc encodes the release of some of the leases. The call must not name a waiter, because a late release would
	// put a waiter that has left back into the queue. When releases are merged, the CallFunc of the first is kept. It
	// must not block.
	CallFunc func(ids []string, ballot int64) *frame.Call
}

// bytes returns roughly how much memory r uses: its texts, and the overhead of the list and CallFunc for each name.
func (r *PendingRelease) bytes() int {
	n := 512 + 2*len(r.Name)
	for _, id := range r.Leases {
		n += 16 + len(id)
	}
	return n
}

// A pendingList holds the pending releases of one master. All methods are safe for concurrent use, and none blocks.
type pendingList struct {
	mu       sync.Mutex
	closed   bool
	releases map[string]PendingRelease
	bytes    int      // total of releases
	due      []string // names whose releases are still to be sent in this pass
	inFlight int      // total size of the release calls that await their reply
}

// size returns how much a release call takes of the window: usually a call has one lease, and a window of few calls
// would take a round trip for each few locks before the session opens.
func (r *PendingRelease) size() int { return max(1, len(r.Leases)) }

// add adds r, and reports whether the list had room.
func (l *pendingList) add(r PendingRelease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, before := slices.Clone(r.Leases), 0
	known, merged := l.releases[r.Name]
	if merged {
		before = known.bytes()
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(known.Leases, id) })
		ids = append(known.Leases, ids...)
		r.CallFunc, r.Ballot = known.CallFunc, max(known.Ballot, r.Ballot)
	}
	r.Leases = ids
	more := r.bytes() - before
	//mutant:pending-bytes 5= false
	if l.closed || len(ids) > maxPendingLeases || !merged && len(l.releases) == maxPending ||
		l.bytes+more > maxPendingBytes {
		return false
	}
	l.bytes += more
	if l.releases == nil {
		l.releases = make(map[string]PendingRelease)
	}
	l.releases[r.Name] = r
	return true
}

func (l *pendingList) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.releases)
}

// close drops all pending releases.
func (l *pendingList) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.releases, l.due, l.bytes = true, nil, nil, 0
}

// begin starts a pass that sends all pending releases, unless a pass is under way.
func (l *pendingList) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight == 0 && len(l.due) == 0 {
		l.due = slices.Sorted(maps.Keys(l.releases))
	}
}

// idle reports whether no pass is under way.
func (l *pendingList) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight == 0 && len(l.due) == 0
}

// stop ends the pass. Release calls may still be in flight.
func (l *pendingList) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = nil
}

// next returns the next release of the pass, or a part of it, if there is one and the window has room.
func (l *pendingList) next() (p PendingRelease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant:resend-window 2= l.inFlight > 64
	if len(l.due) == 0 || l.inFlight >= resendWindow {
		return p, false
	}
	p = l.releases[l.due[0]]
	l.due = l.due[1:]
	p.Leases = slices.Clone(p.Leases[:min(len(p.Leases), leasesPerCall)])
	l.inFlight += p.size()
	return p, true
}

// finish records the end of a release call. Leases added while it was in flight are sent by another call of the same
// pass.
func (l *pendingList) finish(p PendingRelease, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight -= p.size()
	known, there := l.releases[p.Name]
	switch {
	case !there || !done:
		return
	case known.Ballot > p.Ballot: // send all ids again, with the larger ballot: repeating a release is harmless
	case len(known.Leases) > len(p.Leases):
		l.bytes -= known.bytes()
		known.Leases = slices.Clone(known.Leases[len(p.Leases):])
		l.bytes += known.bytes()
		l.releases[p.Name] = known
	default:
		l.bytes -= known.bytes()
		delete(l.releases, p.Name)
		return
	}
	l.due = append(l.due, p.Name)
}

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
	maxPendingBytes  = 64 << 20 // as estimated by PendingRelease.bytes
	leasesPerCall    = 1024     // leases per release call; Lua's unpack has a limit of about 8000
	resendWindow     = 1024     // leases in flight, few enough for replies within the timeout
)

// A PendingRelease is a release that a master has not received, or may not have received.
type PendingRelease struct {
	Name   string   // the lock name; a master has one pending release per name
	Leases []string // the ids of the leases to release
	Ballot int64    // the largest ballot that was sent for the leases
	// CallFunc encodes the release of the leases ids, which are some or all of Leases. It must not block. The call must
	// not name a waiter, because a late release would put a waiter that has left back into the queue. A merged release
	// has the CallFunc of the earlier release.
	CallFunc func(ids []string, ballot int64) *frame.Call
}

// bytes returns an estimate of the memory that r uses, including CallFunc and the overhead of the list.
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
	bytes    int      // estimated size of releases
	due      []string // names whose releases are still to be sent in this pass
	inFlight int      // sum of size over the release calls that await their reply
}

// size returns the share of resendWindow that a release call of r uses. The window is counted in leases, because most
// calls have one lease: if the window were a small number of calls, a session with many pending releases would need
// many round trips before it opens.
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

// next returns the next release of the pass, with at most leasesPerCall of its leases. If no release is left or the
// window is full, ok is false.
func (l *pendingList) next() (r PendingRelease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) == 0 || l.inFlight >= resendWindow {
		return r, false
	}
	r = l.releases[l.due[0]]
	l.due = l.due[1:]
	r.Leases = slices.Clone(r.Leases[:min(len(r.Leases), leasesPerCall)])
	l.inFlight += r.size()
	return r, true
}

// finish records the end of the release call r. done reports whether the reply was final. Leases that r did not contain
// are sent by another call of the same pass.
func (l *pendingList) finish(r PendingRelease, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight -= r.size()
	known, there := l.releases[r.Name]
	switch {
	case !there || !done:
		return
	case known.Ballot > r.Ballot: // send all ids again, with the larger ballot: repeating a release is harmless
	case len(known.Leases) > len(r.Leases):
		l.bytes -= known.bytes()
		known.Leases = slices.Clone(known.Leases[len(r.Leases):])
		l.bytes += known.bytes()
		l.releases[r.Name] = known
	default:
		l.bytes -= known.bytes()
		delete(l.releases, r.Name)
		return
	}
	l.due = append(l.due, r.Name)
}

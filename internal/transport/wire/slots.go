package wire

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Slots limits how many attempts to connect to one address are in progress. If a process with hundreds of clients
// starts, or a server with hundreds of connections restarts, the attempts would otherwise slow each other down until
// all of them time out, which would be repeated for ever. Each address has slots of its own, so that a server that
// accepts connections and does not answer delays only the attempts to connect to itself.
type Slots struct {
	mu   sync.Mutex
	used map[string]*queue // by address; an address without attempts has none
}

// Process are the slots of all connections that this process makes by itself.
var Process = new(Slots)

// A queue contains the attempts to connect to one address, in order of their start.
type queue struct {
	busy  int               // number of attempts in progress
	known []chan<- struct{} // waiting attempts to replace a connection; such an attempt may be needed for held locks
	fresh []chan<- struct{} // all other waiting attempts
}

// most is the number of slots of an address. Eight attempts at once keep a server busy, which serves them one after the
// other. With 16 or 32, the measured storms on an overloaded machine needed more connections and not less time.
const most = 8

// enter waits for a slot for an attempt to connect to addr. The caller must call leave when the attempt has ended.
// Attempts to replace a known connection come first. enter returns an error if ctx ends, or after the time within.
func (s *Slots) enter(ctx context.Context, addr string, within time.Duration, known bool) (leave func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	leave = func() { s.leave(addr) }
	s.mu.Lock()
	q := s.used[addr]
	if q == nil {
		q = new(queue)
		if s.used == nil {
			s.used = make(map[string]*queue)
		}
		s.used[addr] = q
	}
	if q.busy < most {
		q.busy++
		s.mu.Unlock()
		return leave, nil
	}
	turn := make(chan struct{})
	list := &q.fresh
	if known {
		list = &q.known
	}
	*list = append(*list, turn)
	s.mu.Unlock()

	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = fault.Down(fault.Timeout("timed out within %v, behind other connections of this process to it: it does not "+
			"answer, or this host is overloaded", within))
	}
	s.mu.Lock()
	i := slices.Index(*list, turn)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // the slot was given to this attempt at the same moment
		leave()
	}
	return nil, err
}

// leave gives the slot of an attempt to the next attempt.
func (s *Slots) leave(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.used[addr]
	for _, list := range []*[]chan<- struct{}{&q.known, &q.fresh} {
		if len(*list) > 0 {
			close((*list)[0])
			*list = slices.Delete(*list, 0, 1)
			return
		}
	}
	if q.busy--; q.busy == 0 {
		delete(s.used, addr)
	}
}

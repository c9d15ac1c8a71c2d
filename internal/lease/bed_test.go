package lease

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A managerBed is a Manager over masters in memory, and a log of its events.
type managerBed struct {
	*testbed.Bed
	*Manager
	t       *testing.T
	closing chan struct{}
	next    func() *Successor              // nil: no call waits
	sending atomic.Pointer[func()]         // called before a message for which no call waits is sent; nil: none
	other   atomic.Pointer[admission.View] // see change

	mu     sync.Mutex
	logged []string
}

// newBed returns a managerBed with n masters, and waits until all of them vote. The test must run in a bubble.
func newBed(t *testing.T, n int, opts ...pool.Option) *managerBed {
	b := newQuietBed(t, n, opts...)
	b.Run()
	synctest.Wait()
	if v := b.Monitor.View(); v.Voting != v.Config.Rule.All() {
		t.Fatalf("only the masters %b of %d vote", v.Voting, n)
	}
	return b
}

// newQuietBed returns a managerBed that knows nothing about its masters yet.
func newQuietBed(t *testing.T, n int, opts ...pool.Option) *managerBed {
	t.Helper()
	b := &managerBed{Bed: testbed.New(t, n, opts...), t: t, closing: make(chan struct{})}
	b.Manager = NewManager(Env{
		Sender: b.Sender, Clock: b.Bed.Clock, Ballots: b.Bed.Ballots, View: b.view,
		Prefix: testbed.Prefix, Owner: "owner", Label: "label", Closing: b.closing, Events: b, LocalQueue: b,
		Enter: b.enter, Leave: func() {},
	})
	b.OnView = b.Manager.ViewChanged
	t.Cleanup(func() {
		b.EndAll()
		<-b.Stopped()
	})
	return b
}

// enter implements Env.Enter.
func (b *managerBed) enter() {
	if f := b.sending.Load(); f != nil {
		(*f)()
	}
}

// Listen implements LocalQueue.
func (b *managerBed) Listen(*Lease) {}

// terms returns the terms that the tests use: a TTL of 10 s, with extension.
func terms() *Terms {
	return &Terms{
		TTL: 10 * time.Second, Least: 5 * time.Second, Extend: true, Handoffs: 3, HandoffTime: 100 * time.Millisecond,
	}
}

// acquire makes one attempt to acquire the name n.
func (b *managerBed) acquire(t *Terms) (*Lease, error) {
	l, _, err := b.Acquire(b.t.Context(), &Attempt{Name: "n", Keys: testbed.Keys("n"), Terms: t})
	return l, err
}

// lock acquires the name n, and returns the hold.
func (b *managerBed) lock(t *Terms) *Hold {
	b.t.Helper()
	l := must.Get(b.acquire(t))(b.t)
	h := &Hold{}
	must.Do(b.t, h.Start(l, t))
	return h
}

// change makes the Manager use a view that f has changed, instead of the view of the monitor.
func (b *managerBed) change(f func(v *admission.View)) {
	v := *b.Monitor.View()
	v.Masters = append([]admission.State(nil), v.Masters...)
	f(&v)
	b.other.Store(&v)
}

func (b *managerBed) view() *admission.View {
	if v := b.other.Load(); v != nil {
		return v
	}
	return b.Monitor.View()
}

func (b *managerBed) logf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged = append(b.logged, fmt.Sprintf(format, args...))
}

// takeLog returns the log records since its last call.
func (b *managerBed) takeLog() (logged []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	logged, b.logged = b.logged, nil
	return logged
}

// Attempted and the following methods implement Events.
func (b *managerBed) Attempted(_ *Lease, _ *round.Round, _ int64, err error) {
	b.logf("attempted %v", err != nil)
}
func (b *managerBed) Acquired(h *Hold) {
	b.logf("acquired %d", h.Token()-h.Lease().tokens.last)
}
func (b *managerBed) NotSent(_ redlockinfo.Op, name string, _ *round.Failure) {
	b.logf("not sent %s", name)
}
func (b *managerBed) Extended(_ *Lease, err error) { b.logf("extended %v", err != nil) }
func (b *managerBed) Repaired(_ *Lease, i int)     { b.logf("repaired %d", i) }
func (b *managerBed) Lost(_ *Lease, cause error)   { b.logf("lost: %v", cause) }
func (b *managerBed) Releasing(*Lease)             { b.logf("releasing") }
func (b *managerBed) Released(_ *Hold, err error)  { b.logf("released: %v", err) }
func (b *managerBed) Ended(*Lease)                 { b.logf("ended") }
func (b *managerBed) MayIdle(*Lease) bool          { return false }
func (b *managerBed) KeepIdle(*Lease) bool         { return false }

// Successor implements LocalQueue.
func (b *managerBed) Successor(string, time.Duration, time.Duration) *Successor {
	if b.next == nil {
		return nil
	}
	return b.next()
}

func after(d time.Duration) { testbed.After(d) }

// Short names for outcomes of votes.
const (
	staleVote     = quorum.Stale
	admissionVote = quorum.Abstained
)

func vote(o quorum.Outcome, fence, time int64) round.Vote {
	return round.Vote{Vote: scripts.Vote{Outcome: o, Fence: fence, Time: time}}
}

package waitqueue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A testClient is a Queue and its Manager over masters in memory.
type testClient struct {
	*testbed.Bed
	*Queue
	t       *testing.T
	closing chan struct{}
	once    sync.Once       // closes closing
	view    *admission.View // the view of the Manager, or nil for the view of the monitor

	// handing, unless nil, is called when an ownership has ended by a hand-off, before the successor is notified.
	handing func()

	mu     sync.Mutex
	events []string
	// ending, unless nil, is called once when a lease has ended, before the Queue knows that.
	ending func()
}

// newTestClient returns a testClient with n masters, and waits until all of them vote. The test must run in a
// bubble.
func newTestClient(t *testing.T, n int) *testClient {
	t.Helper()
	p := &testClient{Bed: testbed.New(t, n), t: t, closing: make(chan struct{})}
	view := func() *admission.View {
		if p.view != nil {
			return p.view
		}
		return p.Monitor.View()
	}
	manager := lease.NewManager(lease.Env{
		Sender: p.Sender, Clock: p.Bed.Clock, Ballots: p.Ballots, View: view,
		Prefix: testbed.Prefix, Owner: "owner", Label: "label", Closing: p.closing, Events: p, LocalQueue: p,
		Enter: func() {}, Leave: func() {},
	})
	p.Queue = New(Env{
		Manager: manager, Ready: p.Monitor.Ready, Changed: p.Monitor.Changed,
		Subscribe: func() Subscription { return p.Pool.Subscribe(testbed.Prefix.Inbox("owner"), p.Queue) },
		Starved:   func() {}, OwnHold: func(*lease.Lease) {},
	})
	p.OnView = manager.ViewChanged
	p.Run()
	t.Cleanup(func() {
		manager.EndAll()
		p.once.Do(func() { close(p.closing) })
		p.Queue.Close()
		<-manager.Stopped()
	})
	synctest.Wait()
	if v := p.Monitor.View(); v.Voting != v.Config.Rule.All() {
		t.Fatalf("only the masters %b of %d vote", v.Voting, n)
	}
	return p
}

// terms returns the terms that the tests use.
func terms() *lease.Terms {
	return &lease.Terms{
		TTL: 10 * time.Second, Least: 5 * time.Second, Extend: true, Handoffs: 3, HandoffTime: 100 * time.Millisecond,
	}
}

// call returns a call for the name n.
func (p *testClient) call(priority int, fair bool) *Call {
	c := &Call{
		Op: "lock", Name: "n", Keys: testbed.Keys("n"), Terms: terms(), Hold: &lease.Hold{}, Priority: priority, Fair: fair,
		Called: p.Bed.Clock.Now(),
		Poll:   func(int) time.Duration { return 10 * time.Millisecond },
	}
	if fair {
		c.Terms.Handoffs = 0
	}
	return c
}

// A pending is a call of Lock that is in progress.
type pending struct {
	*Call
	cancel context.CancelFunc
	err    chan error // capacity 1
}

// start calls Lock in a goroutine, and returns when Lock waits or has returned.
func (p *testClient) start(c *Call) *pending {
	l := p.begin(c)
	synctest.Wait()
	return l
}

// startDuring is start for a function that the Queue calls.
func (p *testClient) startDuring(c *Call) *pending {
	l := p.begin(c)
	<-time.After(time.Millisecond)
	return l
}

func (p *testClient) begin(c *Call) *pending {
	ctx, cancel := context.WithCancel(p.t.Context())
	l := &pending{Call: c, cancel: cancel, err: make(chan error, 1)}
	go func() { l.err <- p.Lock(ctx, c) }()
	return l
}

// is returns the state of the Lock: "waits", "holds" or "failed".
func (l *pending) is() string {
	synctest.Wait()
	select {
	case err := <-l.err:
		l.err <- err
		if err != nil {
			return "failed"
		}
		return "holds"
	default:
		return "waits"
	}
}

// subscribed reports whether the inbox is open.
func (p *testClient) subscribed() bool {
	p.Queue.mu.Lock()
	defer p.Queue.mu.Unlock()
	return p.inbox != nil
}

// Attempted and the following methods implement lease.Events.
func (p *testClient) Attempted(_ *lease.Lease, _ *round.Round, _ int64, err error) {
	p.logf("attempted %v", err == nil)
}
func (p *testClient) NotSent(redlockinfo.Op, string, *round.Failure) { p.logf("not sent") }
func (p *testClient) Acquired(*lease.Hold)                           { p.logf("acquired") }
func (p *testClient) Extended(*lease.Lease, error)                   {}
func (p *testClient) Repaired(*lease.Lease, int)                     {}
func (p *testClient) Lost(*lease.Lease, error)                       { p.logf("lost") }
func (p *testClient) Releasing(l *lease.Lease)                       { p.Queue.Releasing(l) }

func (p *testClient) Ended(l *lease.Lease) {
	p.mu.Lock()
	f := p.ending
	p.ending = nil
	p.mu.Unlock()
	if f != nil {
		f()
	}
	p.Queue.Ended(l)
}

func (p *testClient) Released(h *lease.Hold, err error) {
	if f := p.handing; f != nil && h.Lease().Info().Token != h.Token() {
		p.handing = nil
		f()
	}
	p.logf("released")
}

func (p *testClient) logf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf(format, args...))
}

// A fakeSub is a Subscription that the masters of the set have confirmed.
type fakeSub quorum.Set

func (s fakeSub) Confirmed() uint64 { return uint64(s) }
func (s fakeSub) Close()            {}

func after(d time.Duration) { testbed.After(d) }

// vote returns the vote of a master with this outcome, place in the queue and remaining TTL.
func vote(k quorum.Outcome, place int, left time.Duration) round.Vote {
	return round.Vote{Vote: scripts.Vote{Outcome: k, Place: place, Left: left}}
}

package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/testbed"
)

// A program is a Queue and its Keeper over masters in memory.
type program struct {
	*testbed.Bed
	*Queue
	t       *testing.T
	closing chan struct{}
	once    sync.Once       // closes closing
	view    *admission.View // what the Keeper sees; nil: what the voters see

	// handing, if it is there, is called when a tenure has ended by handing on, before the heir is told.
	handing func()

	mu     sync.Mutex
	events []string
}

// newProgram makes one inside the bubble in which the test runs, and waits until all masters vote.
func newProgram(t *testing.T, n int) *program {
	t.Helper()
	p := &program{Bed: testbed.New(t, n), t: t, closing: make(chan struct{})}
	view := func() *admission.View {
		if p.view != nil {
			return p.view
		}
		return p.Voters.View()
	}
	keeper := grant.NewKeeper(grant.Env{
		Sender: p.Sender, Clock: p.Bed.Clock, Drift: clock.DefaultDrift, Ballots: p.Ballots, View: view,
		Prefix: testbed.Prefix, Owner: "owner", Label: "label", Closing: p.closing, Events: p, Waiters: p,
		Enter: func() {}, Leave: func() {},
	})
	p.Queue = New(Env{
		Keeper: keeper, Ready: p.Voters.Ready, Changed: p.Voters.Changed,
		Listen: func() Subscription { return p.Pool.Subscribe(testbed.Prefix.Inbox("owner"), p) },
	})
	p.OnView = keeper.Changed
	p.Run()
	t.Cleanup(func() {
		keeper.EndAll()
		p.once.Do(func() { close(p.closing) })
		p.Queue.Close()
		<-keeper.Ended()
	})
	synctest.Wait()
	if v := p.Voters.View(); v.Voting != v.Config.Rule.All() {
		t.Fatalf("%b vote of %d", v.Voting, n)
	}
	return p
}

// terms are those of tests.
func terms() *grant.Terms {
	return &grant.Terms{
		TTL: 10 * time.Second, Least: 5 * time.Second, Extend: true, HandOns: 3, HandOnTime: 100 * time.Millisecond,
	}
}

func keysOf(name string) *scripts.Keys {
	keys := testbed.Prefix.Keys(name)
	return &keys
}

// call makes a call for the name n.
func (p *program) call(priority int, fair bool) *Call {
	c := &Call{
		Name: "n", Keys: keysOf("n"), Terms: terms(), Handle: &grant.Handle{}, Priority: priority, Fair: fair,
		Called: p.Bed.Clock.Now(),
		PausesFunc: func() func() time.Duration {
			return func() time.Duration { return 10 * time.Millisecond }
		},
	}
	if fair {
		c.Terms.HandOns = 0
	}
	return c
}

// A pending is a Lock under way.
type pending struct {
	*Call
	cancel context.CancelFunc
	err    chan error // capacity 1
}

// start calls Lock in a goroutine, and returns when it waits or has returned.
func (p *program) start(c *Call) *pending {
	ctx, cancel := context.WithCancel(p.t.Context())
	l := &pending{Call: c, cancel: cancel, err: make(chan error, 1)}
	go func() { l.err <- p.Lock(ctx, c) }()
	synctest.Wait()
	return l
}

// is says whether the Lock has returned, and what.
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

// unlock ends a Lock that holds.
func (p *program) unlock(l *pending) {
	p.t.Helper()
	if err := l.Handle.Unlock(p.t.Context(), p.Heir("n")); err != nil {
		p.t.Error(err)
	}
}

// subscribed reports whether the inbox is open.
func (p *program) subscribed() bool {
	p.Queue.mu.Lock()
	defer p.Queue.mu.Unlock()
	return p.inbox != nil
}

// waiters are the queues of the masters, by their lengths.
func (p *program) waiters() (lengths []int) {
	for i := range p.Masters.N() {
		n := 0
		view := p.Voters.View()
		to := &counting{n: make(chan int, 1)}
		if err := p.Pool.Send(i, view.Encoder.Inspect(keysOf("n")), poolStamp, to); err == nil {
			n = <-to.n
		}
		lengths = append(lengths, n)
	}
	return lengths
}

// Asked implements grant.Events, as all that follow.
func (p *program) Asked(_ *grant.Grant, _ *round.Round, _ int64, err error) {
	p.tell("asked %v", err == nil)
}
func (p *program) Unasked(string, string, *round.Failure) { p.tell("unasked") }
func (p *program) Acquired(*grant.Handle)                 { p.tell("acquired") }
func (p *program) Extended(*grant.Grant, error)           {}
func (p *program) Repaired(*grant.Grant, int)             {}
func (p *program) Lost(*grant.Grant, error)               { p.tell("lost") }
func (p *program) Releasing(g *grant.Grant)               { p.Queue.Releasing(g) }
func (p *program) Over(g *grant.Grant)                    { p.Queue.Over(g) }

func (p *program) Released(h *grant.Handle, err error) {
	if f := p.handing; f != nil && h.Grant().Info().Token != h.Token() {
		p.handing = nil
		f()
	}
	p.tell("released")
}

func (p *program) tell(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf(format, args...))
}

// count is how often something was told.
func (p *program) count(event string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e == event {
			n++
		}
	}
	return n
}

// Message implements pool.Listener.
func (p *program) Message(master int, _, payload string) {
	if h, ok := testbed.Prefix.ParseHint(payload); ok {
		p.Hint(master, h)
	}
}

// Gap implements pool.Listener.
func (p *program) Gap(master int) { p.Queue.Gap(master) }

// A fakeSub stands on the masters that a test says.
type fakeSub quorum.Set

func (s fakeSub) StandingOn() uint64 { return uint64(s) }
func (s fakeSub) Close()             {}

// after lets virtual time pass, and what is due then happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// vote is one that a master itself has given.
func vote(k scripts.Kind, place int, left time.Duration) round.Vote {
	return round.Vote{Vote: scripts.Vote{Kind: k, Place: place, Left: left}}
}

package grant

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/testbed"
)

// A keeperBed is a Keeper over masters in memory, and what it has told.
type keeperBed struct {
	*testbed.Bed
	*Keeper
	t       *testing.T
	closing chan struct{}
	other   atomic.Pointer[admission.View] // see change

	mu   sync.Mutex
	told []string
}

// newBed makes one inside the bubble in which the test runs, and waits until all masters vote.
func newBed(t *testing.T, n int, opts ...pool.Option) *keeperBed {
	b := newQuietBed(t, n, opts...)
	b.Run()
	synctest.Wait()
	if v := b.Voters.View(); v.Voting != v.Config.Rule.All() {
		t.Fatalf("%b vote of %d", v.Voting, n)
	}
	return b
}

// newQuietBed is newBed before anything is known of the masters.
func newQuietBed(t *testing.T, n int, opts ...pool.Option) *keeperBed {
	t.Helper()
	b := &keeperBed{Bed: testbed.New(t, n, opts...), t: t, closing: make(chan struct{})}
	b.Keeper = NewKeeper(Env{
		Sender: b.Sender, Clock: b.Bed.Clock, Drift: clock.DefaultDrift, Ballots: b.Bed.Ballots, View: b.view,
		Prefix: testbed.Prefix, Owner: "owner", Label: "label", Closing: b.closing, Events: b, Waiters: b,
		Enter: func() {}, Leave: func() {},
	})
	b.OnView = b.Keeper.Changed
	t.Cleanup(func() {
		b.EndAll()
		<-b.Ended()
	})
	return b
}

// terms are those of tests: a TTL of 10 s, extended.
func terms() *Terms {
	return &Terms{
		TTL: 10 * time.Second, Least: 5 * time.Second, Extend: true, HandOns: 3, HandOnTime: 100 * time.Millisecond,
	}
}

func keysOf(name string) *scripts.Keys {
	keys := testbed.Prefix.Keys(name)
	return &keys
}

// ask asks for the name n.
func (b *keeperBed) ask(t *Terms) (*Grant, error) {
	g, _, err := b.Ask(b.t.Context(), &Ask{Op: "lock", Name: "n", Keys: keysOf("n"), Terms: t})
	return g, err
}

// lock holds the name n.
func (b *keeperBed) lock(t *Terms) *Handle {
	b.t.Helper()
	g, err := b.ask(t)
	if err != nil {
		b.t.Fatal(err)
	}
	h := &Handle{}
	if err := g.Begin(h, t); err != nil {
		b.t.Fatal(err)
	}
	return h
}

// on is on how many masters the name n stands.
func (b *keeperBed) on() (n int) {
	for i := range b.Masters.N() {
		if id, _, _ := b.Masters.Master(i).Holds("n"); id != "" {
			n++
		}
	}
	return n
}

// change has the Keeper see another view than the one that the voters have.
func (b *keeperBed) change(f func(v *admission.View)) {
	v := *b.Voters.View()
	v.Masters = append([]admission.State(nil), v.Masters...)
	f(&v)
	b.other.Store(&v)
}

func (b *keeperBed) view() *admission.View {
	if v := b.other.Load(); v != nil {
		return v
	}
	return b.Voters.View()
}

func (b *keeperBed) tell(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, fmt.Sprintf(format, args...))
}

// said is what was told since the last call.
func (b *keeperBed) said() (told []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	told, b.told = b.told, nil
	return told
}

// Asked implements Events, as all that follow.
func (b *keeperBed) Asked(_ *Grant, _ *round.Round, _ int64, err error) {
	b.tell("asked %v", err != nil)
}
func (b *keeperBed) Unasked(_, name string, _ *round.Failure) { b.tell("unasked %s", name) }
func (b *keeperBed) Acquired(h *Handle)                       { b.tell("acquired %d", h.Token()-h.g.block.last) }
func (b *keeperBed) Extended(_ *Grant, err error)             { b.tell("extended %v", err != nil) }
func (b *keeperBed) Repaired(_ *Grant, i int)                 { b.tell("repaired %d", i) }
func (b *keeperBed) Lost(_ *Grant, cause error)               { b.tell("lost: %v", cause) }
func (b *keeperBed) Releasing(*Grant)                         { b.tell("releasing") }
func (b *keeperBed) Released(_ *Handle, err error)            { b.tell("released: %v", err) }
func (b *keeperBed) Over(*Grant)                              { b.tell("over") }

// after lets virtual time pass, and what is due then happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Kinds of votes by short names.
const (
	staleVote     = scripts.Stale
	missingVote   = scripts.Missing
	admissionVote = scripts.Abstained
)

func vote(k scripts.Kind, fence, time int64) round.Vote {
	return round.Vote{Vote: scripts.Vote{Kind: k, Fence: fence, Time: time}}
}

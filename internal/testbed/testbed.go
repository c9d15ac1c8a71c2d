package testbed

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/monitor"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// Prefix is the prefix of all keys on the masters.
const Prefix = scripts.Prefix("redlock")

// Keys returns the keys of a name.
func Keys(name string) *scripts.Keys {
	keys := Prefix.Keys(name)
	return &keys
}

// After waits for d of the time of a bubble, and then until all other goroutines of the bubble wait.
func After(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A Bed contains the parts of one client below package lease. It must be made inside a synctest bubble.
type Bed struct {
	Masters *memory.Masters
	Pool    *transport.Transport
	Clock   *clock.Clock
	Ballots *ballot.Ballots
	Monitor *monitor.Monitor
	Sender  *round.Sender
	// OnView may be set before Run is called.
	OnView func(last, next *admission.View)
}

// New returns a Bed over n admitted masters, which is closed when the test ends.
func New(t testing.TB, n int, opts ...pool.Option) *Bed {
	t.Helper()
	b := &Bed{Masters: memory.New(n), Clock: clock.Runtime(), OnView: func(_, _ *admission.View) {}}
	made, err := b.Masters.Pool(append([]pool.Option{transport.WithClock(b.Clock)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	p := transport.Of(made)
	b.Pool = p
	c := &quorum.Config{Rule: quorum.Rule{Old: quorum.First(n)}, Tracked: quorum.Rule{Old: quorum.First(n)}, Slots: n}
	var names []string
	for i := range n {
		c.Order, c.Slowest = append(c.Order, i), p.Timeout(i)
		names = append(names, p.Addr(i))
	}
	c.Masters = scripts.List(names)
	b.Ballots = ballot.New(c.Rule)
	b.Monitor = monitor.New(monitor.Settings{
		Pool: p, Clock: b.Clock, Clocks: b.Ballots.Clocks, Prefix: Prefix, MaxTTL: 30 * time.Second,
		Closed: errors.New("testbed: closed"),
		OnView: func(last, next *admission.View) { b.OnView(last, next) },
	}, c)
	b.Sender = &round.Sender{
		Pool: p, Clock: b.Clock, Doubt: b.Monitor.Doubt, Health: round.NewHealth(func(int) {}),
		Quarantine: func(int, *admission.State) time.Duration { return 0 },
	}
	t.Cleanup(func() {
		b.Monitor.Close()
		_ = p.Close() // it returns nil
		b.Masters.Close()
	})
	return b
}

// Run starts the Monitor.
func (b *Bed) Run() { go b.Monitor.Run() }

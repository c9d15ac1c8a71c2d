package redlock_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Single schedules that once broke a guarantee, each written out step by step.

// A slowConn delays writes.
type slowConn struct {
	net.Conn
	pause *atomic.Int64
}

func (c slowConn) Write(b []byte) (int, error) {
	if d := time.Duration(c.pause.Load()); d > 0 {
		<-time.After(d)
	}
	return c.Conn.Write(b)
}

// A party is a Locker with its own pool, which can be cut off from single masters, or reach them late.
type party struct {
	*redlock.Locker
	t       *testing.T
	masters *memory.Masters
	away    map[string]*atomic.Bool
	late    map[string]*atomic.Int64 // the delay of messages, in nanoseconds
}

func newParty(t *testing.T, m *memory.Masters, cutAt []int, opts ...redlock.Option) *party {
	t.Helper()
	c := &party{t: t, masters: m, away: map[string]*atomic.Bool{}, late: map[string]*atomic.Int64{}}
	for i := range m.N() {
		c.away[m.Master(i).Addr()], c.late[m.Master(i).Addr()] = new(atomic.Bool), new(atomic.Int64)
	}
	for _, i := range cutAt {
		c.away[m.Master(i).Addr()].Store(true)
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c.away[addr].Load() {
			return nil, errors.New("cut off")
		}
		nc, err := m.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return slowConn{nc, c.late[addr]}, nil
	}
	p, err := pool.Open(m.URLs(), pool.WithDialer(dial), transport.WithClock(clock.Runtime()))
	if err != nil {
		t.Fatal(err)
	}
	opts = append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)
	if c.Locker, err = redlock.New(p, opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // the party may be cut off from all masters
		_ = p.Close()
	})
	c.Ready(t.Context())
	return c
}

func (c *party) cutOff(which ...int) {
	for _, i := range which {
		c.away[c.masters.Master(i).Addr()].Store(true)
		c.masters.Master(i).CutConnections()
	}
}

// pause returns the delay of messages to master i.
func (c *party) pause(i int) *atomic.Int64 { return c.late[c.masters.Master(i).Addr()] }

func (c *party) lock(opts ...redlock.LockOption) *redlock.Lock {
	c.t.Helper()
	k, err := c.TryLock(c.t.Context(), "x", opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return k
}

// mustNotTake fails the test if c gets the lock while held is still valid.
func (c *party) mustNotTake(held *redlock.Lock) {
	c.t.Helper()
	other, err := c.TryLock(c.t.Context(), "x")
	if err == nil && held.Err() == nil && held.Remaining() > 0 {
		c.t.Errorf("two holders: the first has %v left, the second %v", held.Remaining(), other.Remaining())
	}
	if held.Err() != nil || held.Remaining() <= 0 {
		c.t.Errorf("the first lock ended before: %v", held.Err())
	}
}

// forAMinute are the options of a client with a longer max TTL than the default.
var forAMinute = []redlock.Option{
	redlock.WithMaxTTL(time.Minute), redlock.WithTTL(time.Minute), redlock.WithExtension(false),
}

func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func newMasters(t *testing.T, n int) *memory.Masters {
	m := memory.New(n)
	t.Cleanup(func() { m.Close() })
	return m
}

func slow(m *memory.Masters, d time.Duration) {
	for i := range m.N() {
		m.Master(i).Delay(d)
	}
}

// The last Unlock ends the hold, even if re-entries are under way: no caller would be left to unlock it.
func TestUnlockWhileAReentryIsUnderWayReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		c := newParty(t, m, nil)
		lock := c.lock()
		slow(m, 5*time.Millisecond)
		ctx := lock.Context(t.Context())
		inner := make(chan error, 1)
		go func() {
			_, err := c.Lock(ctx, "x")
			inner <- err
		}()
		passes(2 * time.Millisecond)
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-inner; !errors.Is(err, redlock.ErrReleased) && !errors.Is(err, context.Canceled) {
			t.Errorf("the re-entry: %v", err)
		}
		passes(time.Second)
		if id, on := m.Holder("x"); on > 0 {
			t.Errorf("%s holds the name on %d masters", id, on)
		}
	})
}

// A hold that ended by its limit while a re-entry was under way is released by the last Unlock, not left to its TTL.
func TestUnlockAfterALossDuringAReentryReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		c := newParty(t, m, nil)
		lock := c.lock(redlock.WithTTL(20*time.Second), redlock.WithMaxHold(time.Second))
		passes(990 * time.Millisecond)
		slow(m, 20*time.Millisecond)
		inner := make(chan error, 1)
		go func() {
			_, err := c.Lock(lock.Context(context.Background()), "x")
			inner <- err
		}()
		passes(10100 * time.Microsecond)
		if err := lock.Unlock(t.Context()); !errors.Is(err, redlock.ErrMaxHold) {
			t.Error(err)
		}
		if err := <-inner; err == nil {
			t.Error("the re-entry entered a hold that had ended")
		}
		passes(time.Second)
		if id, on := m.Holder("x"); on > 0 {
			t.Errorf("%s holds the name on %d masters", id, on)
		}
	})
}

// H28: a repair that comes after a longer re-entry does not shorten the key that the re-entry counts on.
func TestALateRepairDoesNotShortenAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		c, d := newParty(t, m, nil), newParty(t, m, nil)
		lock := c.lock()
		synctest.Wait()
		m.Master(2).Evict("x")
		slow(m, 5*time.Millisecond)
		go func() { _ = lock.Extend(t.Context()) }()
		passes(4 * time.Millisecond)
		go func() { _ = lock.Extend(t.Context()) }()
		passes(8 * time.Millisecond)
		won := make(chan *redlock.Lock, 1)
		go func() {
			ctx := lock.Context(t.Context())
			inner, err := c.Lock(ctx, "x", redlock.WithTTL(30*time.Second), redlock.WithMinValidity(time.Second))
			if err != nil {
				t.Error(err)
			}
			won <- inner
		}()
		passes(3 * time.Millisecond)
		c.cutOff(1) // the messages of the re-entry to this master are lost with the connection
		inner := <-won
		c.cutOff(0, 1, 2)
		slow(m, 0)
		passes(10500 * time.Millisecond) // longer than the first TTL
		d.mustNotTake(inner)
	})
}

// H58: the records that an idle client read long ago do not determine the length of a quarantine.
func TestAQuarantineGoesByRecordsReadAfterItWasNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		for i, g := range []time.Duration{10 * time.Second, 10 * time.Second, time.Minute} {
			m.Master(i).Admit("redlock", g)
		}
		idle := newParty(t, m, nil, redlock.WithMaxTTL(10*time.Second), redlock.WithTTL(5*time.Second))
		b := newParty(t, m, nil, forAMinute...)
		m.Master(0).Flush()                                                                  // no connection notices
		if _, err := b.TryLock(t.Context(), "y", redlock.WithTTL(time.Second)); err != nil { // b contacts the master
			t.Fatal(err)
		}
		passes(65 * time.Second)
		held := b.lock()
		b.cutOff(2) // another client must detect the restarted master first
		m.Master(2).Restart(false)
		passes(14 * time.Second)
		idle.mustNotTake(held)
	})
}

// A master that boots before its clock is set is not admitted by a client that sees too few clocks to compare.
func TestAWrongClockIsNotTakenForTheMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		h := newParty(t, m, []int{1}, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		held := h.lock()
		h.cutOff(0)
		m.Master(0).SetClock(-10*time.Minute, 1)
		m.Master(0).Restart(false)
		c := newParty(t, m, []int{2}, redlock.WithTTL(5*time.Second))
		passes(4 * time.Second)
		m.Master(0).SetClock(0, 1) // NTP
		passes(5 * time.Second)
		c.mustNotTake(held)
	})
}

// H58: a master that has lost its data does not know the max TTL that was in use.
func TestAMasterThatForgotIsNoWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 5)
		for i, g := range []time.Duration{time.Minute, time.Minute, time.Minute, 10 * time.Second, 10 * time.Second} {
			m.Master(i).Admit("redlock", g)
		}
		b := newParty(t, m, nil, forAMinute...)
		held := b.lock()
		b.cutOff(0, 1)
		m.Master(0).Restart(false)
		m.Master(1).Restart(false)
		s := newParty(t, m, []int{2}, redlock.WithMaxTTL(10*time.Second), redlock.WithTTL(5*time.Second))
		passes(14 * time.Second)
		s.mustNotTake(held)
	})
}

// A quarantine that began while too few other masters were reachable waits for them, however long, and then lasts no
// longer than their records require.
func TestAQuarantineEndsOnceAQuorumWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		c := newParty(t, m, nil)
		m.Master(0).Restart(false)
		passes(5 * time.Second)
		if left := c.Masters()[0].Left; left < 20*time.Second || left > redlock.DefaultMaxTTL {
			t.Errorf("%v left, the max TTL is %v", left, redlock.DefaultMaxTTL)
		}
		c.cutOff(1, 2)
		passes(10 * time.Minute)
		if state := c.Masters()[0].State; state == "voting" {
			t.Errorf("state %s, with no other master reached", state)
		}
		c.away[m.Master(1).Addr()].Store(false)
		passes(5 * time.Second)
		if state := c.Masters()[0].State; state != "voting" {
			t.Errorf("state %s, with one of two other masters reached", state)
		}
	})
}

// A failed re-entry with a longer TTL does not make the extensions of the hold loop without pauses.
func TestExtensionsDoNotSpinAfterALongerReentryFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		c := newParty(t, m, nil, redlock.WithTTL(time.Second))
		lock := c.lock()
		slow(m, time.Millisecond)
		ctx, cancel := context.WithTimeout(lock.Context(t.Context()), time.Millisecond)
		defer cancel()
		if _, err := c.Lock(ctx, "x", redlock.WithTTL(30*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		passes(40 * time.Second)
		total := 0
		for _, n := range m.Master(0).Commands() {
			total += n
		}
		if total > 200 {
			t.Errorf("%d commands in 40 s", total)
		}
		if lock.Err() != nil {
			t.Error(lock.Err())
		}
	})
}

// H26, H59: one master with a poisoned fence does not stop the repair of the others.
func TestAPoisonedFenceDoesNotStopRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 5)
		m.Master(4).Set("redlock:{x}:fence", "9000000000000000")
		c := newParty(t, m, nil)
		lock := c.lock()
		passes(5 * time.Second)
		m.Master(3).Evict("x")
		passes(30 * time.Second)
		if on, n := lock.HeldOn(); on != n {
			t.Errorf("held on %d of %d", on, n)
		}
	})
}

// Of a concurrent Export and Unlock one wins: a handle that was returned is valid.
func TestAHandleThatWasGivenIsGood(t *testing.T) {
	m := newMasters(t, 3)
	p, err := m.Pool()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l := locker(t, p)
	for range 500 {
		k, err := l.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		var text string
		var exported error
		var wg sync.WaitGroup
		start := make(chan struct{})
		wg.Go(func() { <-start; text, exported = k.Export() })
		wg.Go(func() { <-start; _ = k.Unlock(t.Context()) })
		close(start)
		wg.Wait()
		if exported != nil {
			continue
		}
		next, err := l.Import(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// H37: Close waits for an Unlock that came first, so the pool can be closed after it.
func TestCloseWaitsForAnUnlockUnderWay(t *testing.T) {
	m := newMasters(t, 3)
	for range 200 {
		p, err := m.Pool()
		if err != nil {
			t.Fatal(err)
		}
		l, err := redlock.New(p)
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx := k.Context(t.Context())
		var cancels []context.CancelFunc
		for range 200 { // ending them takes a moment
			_, cancel := context.WithCancel(ctx)
			cancels = append(cancels, cancel)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = k.Unlock(t.Context())
		}()
		<-k.Done()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.Close()
		<-done
		for _, cancel := range cancels {
			cancel()
		}
		if id, on := m.Holder("x"); on > 0 {
			t.Fatalf("%s holds the name on %d masters after Close", id, on)
		}
	}
}

package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	step "github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Most tests run the real client and the real pool over masters in memory, in a bubble of testing/synctest. The time of
// a bubble advances only when all its goroutines wait, so a second of virtual time takes microseconds, and times are
// exact. Tests of real servers are in the files real_*_test.go, and use a deployment instead of a cluster.
//
// Tests call the API itself. The helpers around it are:
//
//	must, noError           the call succeeds; must ends the test if not
//	isError, says, notError the error of a call
//	goLock, goAcquire       a call in the background; mustWait, mustLock and mustFail await it (background_test.go)
//	want...                 checks of locks, masters and the log
//	hang, stop, delay, ...  disturb masters: those with the given numbers, or all
//	peer                    a client that can be cut off, killed or frozen (network_test.go)
//	wire                    the messages that were sent (wire_test.go)
//	logbook                 the log (log_test.go)

// A tester is a test with the checks that most tests need.
type tester struct{ testing.TB }

// withTimeout returns a context with this timeout.
func (c tester) withTimeout(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), d)
	c.Cleanup(cancel)
	return ctx
}

// must ends the test if an error is not nil.
func (c tester) must(errs ...error) {
	c.Helper()
	step.Do(c, errs...)
}

// must returns the value of a call, and ends the test if the call has failed: must(l.Lock(ctx, "n"))(t).
func must[T any](v T, err error) func(t testing.TB) T { return step.Get(v, err) }

// noError is like must, but the test continues.
func (c tester) noError(errs ...error) {
	c.Helper()
	if err := errors.Join(errs...); err != nil {
		c.Error(err)
	}
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// isError fails the test unless err matches all of want.
func (c tester) isError(err error, want ...error) {
	c.Helper()
	for _, e := range want {
		if !errors.Is(err, e) {
			c.Errorf("%v does not match %v", err, e)
		}
	}
}

// notError fails the test if err matches one of others.
func (c tester) notError(err error, others ...error) {
	c.Helper()
	for _, e := range others {
		if errors.Is(err, e) {
			c.Errorf("%v matches %v", err, e)
		}
	}
}

// says fails the test unless err matches target and contains all the words.
func (c tester) says(err, target error, words ...string) {
	c.Helper()
	c.isError(err, target)
	for _, word := range words {
		if !strings.Contains(fmt.Sprint(err), word) {
			c.Errorf("the text %q is not in the error %q", word, fmt.Sprint(err))
		}
	}
}

// equal fails the test unless got is want.
func equal[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// atMost fails the test if got is larger than most.
func atMost[T cmp.Ordered](t testing.TB, got, most T, what string) {
	t.Helper()
	if got > most {
		t.Errorf("%s: got %v, want at most %v", what, got, most)
	}
}

// wantHeld fails the test unless k is valid and known to be held on n masters.
func (c tester) wantHeld(k *redlock.Lock, n int) {
	c.Helper()
	if on, _ := client.HeldOn(k); on != n || k.Err() != nil {
		c.Errorf("%s is held on %d masters, want %d: %v", k.Name(), on, n, k.Err())
	}
}

// wantLater fails the test unless next has a larger token than k.
func (c tester) wantLater(next, k *redlock.Lock) {
	c.Helper()
	if next.Token() <= k.Token() {
		c.Errorf("%s: the token %d is not larger than %d", k.Name(), next.Token(), k.Token())
	}
}

// wantSince fails the test if more than most has passed since start.
func (c tester) wantSince(start time.Time, most time.Duration) {
	c.Helper()
	if took := time.Since(start); took > most {
		c.Errorf("it took %v, want at most %v", took, most)
	}
}

// isDone reports whether a lock or a context has ended.
func isDone(x interface{ Done() <-chan struct{} }) bool {
	select {
	case <-x.Done():
		return true
	default:
		return false
	}
}

// A cluster is one bubble with masters, and the wire between them and the Lockers.
type cluster struct {
	tester
	masters *memory.Masters
	wire    *wire

	mu    sync.Mutex
	peers []*peer
}

// virtual runs f in a bubble with n masters, which are admitted unless an option says otherwise. Pools and Lockers
// that f makes are closed when f has returned. Such tests run in parallel.
func virtual(t *testing.T, n int, f func(w *cluster), opts ...memory.Option) {
	t.Helper()
	t.Parallel()
	bubble(t, n, f, opts...)
}

// bubble runs f like virtual, for a test that has several bubbles, one after the other.
func bubble(t *testing.T, n int, f func(w *cluster), opts ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{tester: withDeadline(t), masters: memory.New(n, opts...)}
		w.wire = &wire{masters: w.masters}
		t.Cleanup(w.masters.Close)
		f(w)
	})
}

// withDeadline returns a test whose context ends after two days of the bubble's time, so that no call waits forever.
func withDeadline(t *testing.T) tester {
	ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
	t.Cleanup(cancel)
	return tester{deadlineTest{t, ctx}}
}

type deadlineTest struct {
	testing.TB
	ctx context.Context
}

func (d deadlineTest) Context() context.Context { return d.ctx }

// after waits for d of the bubble's time, and then until all other goroutines of the bubble wait.
func after(d time.Duration) { testbed.After(d) }

// pool makes a pool whose connections are recorded by the wire.
func (w *cluster) pool(opts ...pool.Option) *pool.Pool {
	w.Helper()
	return w.poolOver(w.masters.URLs(), opts...)
}

func (w *cluster) poolOver(urls []string, opts ...pool.Option) *pool.Pool {
	w.Helper()
	common := []pool.Option{pool.WithDialer(w.wire.dial), transport.WithClock(clock.Runtime())}
	p := must(pool.Open(urls, append(common, opts...)...))(w)
	w.Cleanup(func() { _ = p.Close() })
	return p
}

// newLocker makes a Locker over p without waiting for the masters.
func (w *cluster) newLocker(p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	l := must(redlock.New(p, append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)...))(w)
	w.Cleanup(func() { _ = l.Close() })
	return l
}

// readyLocker makes a Locker over p, and waits until the Locker knows the masters.
func (w *cluster) readyLocker(p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	l := w.newLocker(p, opts...)
	w.Cleanup(func() {
		if err := l.Close(); err != nil {
			w.Errorf("Close at the end of the test returned %v", err)
		}
	})
	client.SetOf(l).AwaitKnown(w.Context())
	synctest.Wait()
	return l
}

// locker returns a Locker with its own pool, like that of a separate client.
func (w *cluster) locker(opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	return w.readyLocker(w.pool(), opts...)
}

// poolOf makes a pool over only the given masters.
func (w *cluster) poolOf(which ...int) *pool.Pool {
	w.Helper()
	return w.poolOver(w.urls(which...))
}

func (w *cluster) urls(which ...int) (list []string) {
	for _, i := range which {
		list = append(list, w.masters.URLs()[i])
	}
	return list
}

// each calls f for the given masters, or for all if none is given.
func (w *cluster) each(f func(i int, m *memory.Master), which ...int) {
	if len(which) == 0 {
		for i := range w.masters.N() {
			which = append(which, i)
		}
	}
	for _, i := range which {
		f(i, w.masters.Master(i))
	}
}

func (w *cluster) hang(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Hang() }, which...)
}

func (w *cluster) resume(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Resume() }, which...)
}

func (w *cluster) delay(d time.Duration, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Delay(d) }, which...)
}

// scriptTime makes each script take the time d.
func (w *cluster) scriptTime(d time.Duration) {
	w.each(func(_ int, m *memory.Master) { m.ScriptTime(d) })
}

// setClocks sets the clocks of masters to the time of the bubble plus d.
func (w *cluster) setClocks(d time.Duration, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.SetClock(d, 1) }, which...)
}

// refuse makes masters answer each script with the error text, or none if text is "".
func (w *cluster) refuse(text string, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Refuse(text) }, which...)
}

// evict makes masters lose the keys of a lock.
func (w *cluster) evict(name string, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Evict(name) }, which...)
}

func (w *cluster) flush(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Flush() }, which...)
}

func (w *cluster) cutConnections(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.CutConnections() }, which...)
}

// restart starts masters again, with their data if keep is set, otherwise empty.
func (w *cluster) restart(keep bool, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Restart(keep) }, which...)
}

func (w *cluster) stop(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Stop() }, which...)
	synctest.Wait()
}

// on returns the number of the given masters, or of all if none is given, on which a client holds name.
func (w *cluster) on(name string, which ...int) (n int) {
	w.each(func(_ int, m *memory.Master) {
		if id, _, _ := m.Holds(name); id != "" {
			n++
		}
	}, which...)
	return n
}

// wantOn fails the test unless a client holds name on n masters, once messages in transit have arrived.
func (w *cluster) wantOn(name string, n int) {
	w.Helper()
	synctest.Wait()
	if on := w.on(name); on != n {
		w.Errorf("%s is held on %d masters, want %d", name, on, n)
	}
}

// count returns how often the masters together have executed a command.
func (w *cluster) count(command string) (n int) {
	w.each(func(_ int, m *memory.Master) { n += m.Commands()[command] })
	return n
}

// replay sends a recorded command once more, on a separate connection, and returns the reply.
func (w *cluster) replay(s sent) any {
	w.Helper()
	var args []any
	for _, a := range s.args[1:] {
		args = append(args, a)
	}
	return must(w.raw(s.master, s.args[0], args...))(w)
}

// A shiftClock is the clock of one client. It runs at rate times the speed of the bubble's clock, and can be set
// forward.
type shiftClock struct {
	mu   sync.Mutex
	base time.Time
	rate float64
	boot time.Duration // how far each of the two clocks is ahead
	wall time.Duration
}

func newShiftClock(rate float64) *shiftClock { return &shiftClock{base: time.Now(), rate: rate} }

func (c *shiftClock) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		c.mu.Lock()
		defer c.mu.Unlock()
		run := int64(float64(time.Since(c.base)) * c.rate)
		return clock.At(run+int64(c.boot)+1, c.base.UnixNano()+run+int64(c.wall))
	})
}

// jump sets the two clocks forward.
func (c *shiftClock) jump(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.wall += wall
}

// ended waits for the end of ctx, at most for the bound, and returns the elapsed time and the cause.
func (w *cluster) ended(ctx context.Context, bound time.Duration) (took time.Duration, cause error) {
	w.Helper()
	start := time.Now()
	select {
	case <-ctx.Done():
		return time.Since(start), context.Cause(ctx)
	case <-time.After(bound + 1):
		w.Fatalf("the context has not ended within %v", bound)
		return 0, nil
	}
}

const defaultPrefix = scripts.Prefix(redlock.DefaultPrefix)

// ends fails the test unless ctx ends within the bound, with a cause that matches all of want.
func (w *cluster) ends(ctx context.Context, bound time.Duration, want ...error) {
	w.Helper()
	_, cause := w.ended(ctx, bound)
	w.isError(cause, want...)
}

// seeded returns a random source with the same numbers in each run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }

// validUntil returns the time at which the lock ends unless it is extended.
func validUntil(k *redlock.Lock) time.Time { return time.Now().Add(k.Remaining()) }

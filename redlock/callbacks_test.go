package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// recovered calls f, recovers from a panic as an HTTP server does around a handler, and reports whether f panicked.
func recovered(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// A handlerFunc is a slog.Handler that calls the function with each record.
type handlerFunc func(r slog.Record)

func (handlerFunc) Enabled(context.Context, slog.Level) bool { return true }

func (h handlerFunc) Handle(_ context.Context, r slog.Record) error {
	h(r)
	return nil
}

func (h handlerFunc) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handlerFunc) WithGroup(string) slog.Handler      { return h }

// logTo returns a logger that calls f with each record.
func logTo(f func(r slog.Record)) redlock.Option { return redlock.WithLogger(slog.New(handlerFunc(f))) }

// callbacks returns one option for each kind of event, with a trace that calls f, and one with a log handler that
// calls f.
func callbacks(f func()) map[string]redlock.Option {
	list := map[string]redlock.Option{"log": logTo(func(slog.Record) { f() })}
	for _, kind := range []redlockinfo.Kind{
		"call", "attempt", "vote", "acquired", "released", "lost", "extended", "repaired", "master", "warning",
	} {
		list[string(kind)] = redlock.WithTrace(redlock.On(kind, func(redlockinfo.Event) { f() }))
	}
	return list
}

// everything uses l in all ways that cause events while one lock is held, and fails the test if l behaves
// differently from a Locker without callbacks. The cluster must have four masters, so that there is a warning.
func (w *cluster) everything(l *redlock.Locker) {
	w.Helper()
	ctx := w.withTimeout(10 * time.Minute)
	kept := must(l.Lock(w.Context(), "kept"))(w)
	first := must(l.Lock(w.Context(), "a"))(w)
	next := w.goLock(ctx, l, "a")
	w.noError(first.Unlock(w.Context()))
	w.noError(next.mustLock(time.Minute).Unlock(w.Context()))
	all := must(l.LockAll(ctx, []string{"b", "c"}))(w)
	w.must(all.Of("b").Extend(ctx), all.Of("c").Extend(ctx))
	w.must(all.Unlock(ctx))
	w.must(l.Do(ctx, "d", func(ctx context.Context, _ *redlock.Lock) error {
		return l.Do(ctx, "d", nothing, redlock.WithReentry())
	}))
	exported := must(l.Lock(ctx, "e"))(w)
	imported := must(l.Import(ctx, must(exported.Export())(w)))(w)
	w.must(imported.Unlock(ctx))
	lost := must(l.Lock(w.Context(), "lost"))(w).Context(ctx)
	late := must(l.Lock(w.Context(), "late", redlock.WithExtension(false)))(w)
	end, lateCtx := validUntil(late), late.Context(ctx)
	w.masters.Lose("lost")
	took, cause := w.ended(lost, 5*time.Second)
	w.isError(cause, redlock.ErrLost)
	w.stop(0)
	<-lateCtx.Done()
	if off := time.Since(end).Abs(); off > 100*time.Millisecond {
		w.Errorf("a context ended %v off the end of its validity; the loss took %v", off, took)
	}
	w.restart(true, 0)
	after(2 * time.Minute)
	w.masters.Master(1).Evict("kept")
	after(10 * time.Second)
	w.wantHeld(kept, w.masters.N())
	w.must(kept.Unlock(ctx))
}

// H99: a log handler or a callback that blocks forever delays only other events: locks are renewed, contexts end in
// time, waiters are woken, calls return, and Close gives up in two seconds.
func TestBlockedCallback(t *testing.T) {
	for name := range callbacks(nil) {
		subtest(t, name, 4, func(w *cluster) {
			block := make(chan struct{})
			release := sync.OnceFunc(func() { close(block) })
			defer release()
			time.AfterFunc(time.Hour, release) // so that a failing test ends
			l := w.newLocker(w.pool(), callbacks(func() { <-block })[name])
			client.SetOf(l).AwaitKnown(w.Context())
			w.everything(l)
			held := must(l.Lock(w.Context(), "held"))(w)
			began := time.Now()
			if err := l.Close(); err == nil || !strings.Contains(err.Error(), "gave up") || time.Since(began) > 2*time.Second {
				w.Errorf("Close returned %v after %v", err, time.Since(began))
			}
			w.isError(held.Err(), redlock.ErrClosed)
			w.wantFree("held")
		})
	}
}

// H100: a log handler or a callback that panics each time does not affect the locks. Panics are counted, and each is
// logged once.
func TestPanickingCallback(t *testing.T) {
	for name := range callbacks(nil) {
		subtest(t, name, 4, func(w *cluster) {
			var panicked, logged atomic.Uint64
			var opts []redlock.Option
			if name != "log" {
				opts = append(opts, logTo(func(r slog.Record) {
					if strings.Contains(r.Message, "panicked") {
						logged.Add(1)
					}
				}))
			}
			l := w.locker(append(opts, callbacks(func() { panicked.Add(1); panic(name) })[name])...)
			w.everything(l)
			w.must(l.Close())
			n := panicked.Load()
			if got := l.Stats().Panics; got != n || n == 0 || name != "log" && logged.Load() != n {
				w.Errorf("%d panics: %d were counted, and %d logged", n, got, logged.Load())
			}
		})
	}
}

// H100: a Trace.Do that panics on the goroutine of the call does not affect the call. A panic of the function that
// Locker.Do runs propagates to the caller, and the lock is released.
func TestPanickingDo(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithTrace(&redlockinfo.Trace{Do: func(context.Context,
			string) context.Context {
			panic("a trace")
		}}))
		ran := false
		if recovered(func() {
			w.must(l.Do(w.Context(), "n", func(context.Context, *redlock.Lock) error { ran = true; return nil }))
		}) {
			w.Error("the panic of the callback propagated")
		}
		if !ran || l.Stats().Panics != 1 {
			w.Errorf("the function ran: %v; the statistics are %+v, want one panic", ran, l.Stats())
		}
		for name, call := range map[string]func(){
			"Do":    func() { _ = l.Do(w.Context(), "n", panics) },
			"DoAll": func() { _ = l.DoAll(w.Context(), []string{"m", "n"}, panics) },
			"Lead":  func() { _ = l.Lead(w.Context(), "n", panics) },
		} {
			if !recovered(call) {
				w.Errorf("%s: the panic of the function did not propagate", name)
			}
		}
		w.wantFree("m", "n")
	})
}

// panics is a function of a Do, a DoAll or a Lead.
func panics[K any](context.Context, K) error { panic("mine") }

// H100: a callback that ends its goroutine, as FailNow of a test does, does not stop later events.
func TestCallbackThatExits(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var n atomic.Int64
		l := w.locker(redlock.WithTrace(redlock.On("acquired", func(redlockinfo.Event) {
			n.Add(1)
			runtime.Goexit()
		})))
		for range 3 {
			w.noError(l.Do(w.Context(), "n", nothing))
		}
		after(time.Minute)
		equal(w, n.Load(), 3, "events")
	})
}

// H99: when many locks end at the same time, all contexts have ended before the first record is logged.
func TestContextsEndBeforeTheLog(t *testing.T) {
	count := rounds(5000, 2000) // the queue of events has room for two events of each lock
	for _, how := range []string{"expired", "restarted", "closed"} {
		subtest(t, how, 3, func(w *cluster) {
			contexts, open := make([]context.Context, count), map[int]time.Time{}
			ends := make([]time.Time, count)
			var mu sync.Mutex
			records := 0
			ending := func() {
				mu.Lock()
				defer mu.Unlock()
				if records++; records > 1 {
					return
				}
				for i, ctx := range contexts {
					if !isDone(ctx) {
						open[i] = time.Now()
					}
				}
			}
			l := w.locker(logTo(func(r slog.Record) {
				if strings.Contains(r.Message, "lost") {
					ending()
				}
			}), redlock.WithTrace(redlock.On("released", func(redlockinfo.Event) { ending() })))
			for i := range contexts {
				contexts[i] = must(l.Lock(w.Context(), fmt.Sprint(i), redlock.WithExtension(false)))(w).Context(w.Context())
				context.AfterFunc(contexts[i], func() { ends[i] = time.Now() })
			}
			switch how {
			case "expired":
				w.hang()
				after(time.Minute)
			case "restarted":
				w.stop(0, 1)
				w.restart(false, 0, 1)
				after(10 * time.Second)
			case "closed":
				w.must(l.Close())
			}
			w.resume()
			mu.Lock()
			defer mu.Unlock()
			if records != count {
				w.Errorf("%d ends of locks were logged, want %d", records, count)
			}
			for i, at := range open { // if masters restarted, some locks are repaired in time, and expire later
				if end := ends[i]; end.Equal(at) {
					w.Fatalf("%d of %d contexts were open at the first record, and ended at that moment", len(open), count)
				}
			}
		})
	}
}

// H99: events keep their order and their times, however late they are delivered. Events that do not fit into the queue
// are dropped, and the log contains the number of dropped events.
func TestSlowCallback(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		block := make(chan struct{})
		release := sync.OnceFunc(func() { close(block) })
		defer release()
		var times []time.Time
		var tokens []int64
		var missing uint64
		l := w.locker(logTo(func(r slog.Record) {
			if strings.Contains(r.Message, "dropped") {
				r.Attrs(func(a slog.Attr) bool {
					if a.Key == "dropped" {
						missing += a.Value.Uint64()
					}
					return true
				})
			}
		}), redlock.WithTrace(redlock.On("acquired", func(i redlockinfo.Event) {
			<-block
			times, tokens = append(times, i.Time), append(tokens, i.Token)
		}), redlock.On("vote", func(redlockinfo.Event) {})))
		var want []time.Time
		var wantTokens []int64
		for len(want) < 100 {
			k := must(l.Lock(w.Context(), "n", redlock.WithHandoff(0, 0)))(w)
			want, wantTokens = append(want, time.Now()), append(wantTokens, k.Token())
			after(time.Second)
			w.noError(k.Unlock(w.Context()))
		}
		for range 5000 {
			if l.Stats().Dropped < 100 {
				w.noError(l.Do(w.Context(), "n", nothing))
			}
		}
		release()
		synctest.Wait()
		s := l.Stats() // read now, since masters that answer after the majority add events
		if missing != s.Dropped || missing < 100 {
			w.Errorf("%d events were dropped, and %d logged", s.Dropped, missing)
		}
		for i := range want {
			if !times[i].Equal(want[i]) || tokens[i] != wantTokens[i] {
				w.Fatalf("event %d is that of token %d at %v, want %d, %v", i, tokens[i], times[i], wantTokens[i], want[i])
			}
		}
	})
}

package redlock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// notify publishes a message about the lease with this id on the given masters, or on all masters if none is given.
func (w *cluster) notify(name, id string, release bool, which ...int) {
	w.Helper()
	keys := defaultPrefix.Keys(name)
	if len(which) == 0 {
		which = []int{0, 1, 2, 3, 4}
	}
	for _, i := range which {
		must(w.do(i, defaultPrefix.Notify(&keys, id, release)))(w)
	}
}

// idOf returns the id of the lease that most masters have for name.
func (w *cluster) idOf(name string) string {
	id, _ := w.masters.Holder(name)
	return id
}

// forceRelease ends the lock of name by a forced release.
func (w *cluster) forceRelease(l *redlock.Locker, name string) {
	w.Helper()
	who := must(l.Inspect(w.Context(), name))(w)
	must(admin.Of(l).ForceRelease(w.Context(), name, who.ID))(w)
}

var hearCases = []struct {
	name string
	opts []redlock.LockOption
	// lose makes p lose the lock, which p has held for two seconds.
	lose   func(w *cluster, p *peer)
	within time.Duration // the lock must end within this time
}{
	{"forced release", nil, func(w *cluster, _ *peer) { w.forceRelease(w.locker(), "n") }, 3 * trip},
	{"forced release, not extended", []redlock.LockOption{redlock.WithExtension(false)},
		func(w *cluster, _ *peer) { w.forceRelease(w.locker(), "n") }, 3 * trip},
	{"another client has it", nil, func(w *cluster, _ *peer) {
		w.evict("n", 0, 1, 2)
		must(w.locker().Lock(w.Context(), "n"))(w)
	}, 4 * trip},
	{"no inbox", nil, func(w *cluster, p *peer) {
		p.deafen()
		w.forceRelease(w.locker(), "n")
	}, redlock.DefaultTTL/3 + trip},
	{"lost messages", nil, func(w *cluster, p *peer) {
		p.tampering(lost)
		w.forceRelease(w.locker(), "n")
	}, redlock.DefaultTTL/3 + trip},
	{"a frozen client", nil, func(w *cluster, p *peer) {
		p.hang()
		w.forceRelease(w.locker(), "n")
		p.wake()
	}, 3 * trip},
}

// A subscribed holder learns within a few round trips that it has lost the lock, and a holder without a subscription
// learns of the loss at its next extension. A lock that is held for less than a second causes no subscription.
func TestHolderHears(t *testing.T) {
	for _, c := range hearCases {
		subtest(t, c.name, 5, func(w *cluster) {
			w.delay(trip / 2)
			p := w.peer("p")
			k := must(p.Lock(w.Context(), "n", c.opts...))(w)
			if p.inbox() != "" {
				w.Error("a new lock has caused a subscription")
			}
			after(2 * time.Second)
			c.lose(w, p)
			w.ends(k.Context(w.Context()), c.within, redlock.ErrLost)
			_ = k.Unlock(w.Context())
		})
	}
	subtest(t, "writer", 5, func(w *cluster) {
		w.delay(trip / 2)
		k := must(w.peer("p").RWLock("n").Lock(w.Context()))(w)
		after(2 * time.Second)
		w.forceRelease(w.locker(), "n")
		w.ends(k.Context(w.Context()), 3*trip, redlock.ErrLost)
		_ = k.Unlock(w.Context())
	})
}

// False messages do not end a lock, and do not prolong a lock that is not extended in the background.
func TestHolderHearsNonsense(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.delay(trip / 2)
		p := w.peer("p")
		k := must(p.Lock(w.Context(), "n"))(w)
		manual := must(p.Lock(w.Context(), "manual", redlock.WithExtension(false)))(w)
		after(2 * time.Second)
		for _, id := range []string{w.idOf("n"), w.idOf("manual"), "x:1:y"} {
			for _, name := range []string{"n", "manual", "other"} {
				w.notify(name, id, false)
			}
		}
		after(5 * time.Second)
		w.must(k.Err(), manual.Err())
		atMost(w, manual.Remaining(), 3*time.Second, "remaining validity")
		w.noError(manual.Unlock(w.Context()))
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("n", "manual")
	})
}

// A flood of messages causes at most ten rounds a second for each lock, and a thousand for all locks together.
func TestFloodOfMessages(t *testing.T) {
	const locks, flood = 150, 20
	virtual(t, 5, func(w *cluster) {
		w.delay(time.Millisecond)
		p := w.peer("p")
		var all []*redlock.Lock
		for i := range locks {
			all = append(all, must(p.Lock(w.Context(), "n"+strconv.Itoa(i), redlock.WithTTL(29*time.Second)))(w))
		}
		after(2 * time.Second)
		one, before, began := w.idOf("n0"), w.count("extend"), time.Now()
		for range 100 * flood {
			w.notify("n0", one, false, 0)
			after(time.Millisecond)
		}
		if n, most := (w.count("extend")-before)/5, 1+int(time.Since(began)/(100*time.Millisecond)); n > most {
			w.Errorf("messages about one lock caused %d rounds in %v, want at most %d", n, time.Since(began), most)
		}
		var ids []string
		for _, k := range all {
			ids = append(ids, w.idOf(k.Name()))
		}
		before, began = w.count("extend"), time.Now()
		for range flood {
			var sent sync.WaitGroup
			for i, k := range all {
				sent.Go(func() { w.notify(k.Name(), ids[i], false, 0) })
			}
			sent.Wait()
			after(10 * time.Millisecond)
		}
		if n, most := (w.count("extend")-before)/5, 1+int(time.Since(began)/time.Millisecond); n > most {
			w.Errorf("messages about %d locks caused %d rounds in %v, want at most %d", locks, n, time.Since(began), most)
		}
		for _, k := range all {
			w.must(k.Err())
		}
	})
}

// requested reports whether c has received a request.
func requested(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// requestRelease requests the release of name, and returns the number of holders that have received the request.
func (w *cluster) requestRelease(l *redlock.Locker, name string) int {
	w.Helper()
	n := must(admin.Of(l).RequestRelease(w.Context(), name))(w)
	after(trip)
	return n
}

var requestCases = []struct {
	name string
	run  func(w *cluster, p, other *peer)
}{
	{"of a function", func(w *cluster, p, other *peer) {
		first := make(chan struct{})
		go func() {
			defer close(first)
			w.must(p.Do(w.Context(), "n", func(ctx context.Context, lock *redlock.Lock) error {
				<-lock.ReleaseRequested()
				return ctx.Err()
			}))
		}()
		after(time.Second / 2)
		its := w.goLock(w.Context(), other, "n").mustWait()
		equal(w, w.requestRelease(other.Locker, "n"), 1, "holders with the request")
		<-first
		w.noError(its.mustLock(10 * trip).Unlock(w.Context()))
	}},
	{"without a holder", func(w *cluster, _, other *peer) {
		equal(w, w.requestRelease(other.Locker, "n"), 0, "holders with the request")
	}},
	{"before the client is subscribed", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		if n := w.requestRelease(other.Locker, "n"); n != 0 || requested(k.ReleaseRequested()) {
			w.Errorf("%d holders have received the request", n)
		}
		w.noError(k.Unlock(w.Context()))
	}},
	{"before ReleaseRequested is called", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		after(2 * time.Second)
		if n := w.requestRelease(other.Locker, "n"); n != 1 || !requested(k.ReleaseRequested()) {
			w.Errorf("%d holders have received the request", n)
		}
		w.requestRelease(other.Locker, "n")
		w.noError(k.Unlock(w.Context()))
	}},
	{"of a re-entry", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		inner := must(p.Lock(k.Context(w.Context()), "n", redlock.WithReentry()))(w)
		c := inner.ReleaseRequested()
		after(5 * trip)
		w.requestRelease(other.Locker, "n")
		if !requested(c) || !requested(k.ReleaseRequested()) {
			w.Error("the hold and its re-entry have not both received the request")
		}
		w.noError(inner.Unlock(w.Context()))
		w.noError(k.Unlock(w.Context()))
	}},
	{"of an earlier lock", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		k.ReleaseRequested()
		id := w.idOf("n")
		after(5 * trip)
		w.noError(k.Unlock(w.Context()))
		k = must(p.Lock(w.Context(), "n"))(w)
		c := k.ReleaseRequested()
		w.notify("n", id, true)
		w.notify("n", id, false)
		after(5 * trip)
		if requested(c) {
			w.Error("a late request for an earlier lock has arrived")
		}
		w.noError(k.Unlock(w.Context()))
		if k.ReleaseRequested() != nil {
			w.Error("the release of an ended lock can be requested")
		}
	}},
	{"with a local waiter", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		k.ReleaseRequested()
		after(5 * trip)
		its := w.goLock(w.Context(), other, "n").mustWait()
		mine := w.goLock(w.Context(), p, "n")
		w.requestRelease(other.Locker, "n")
		w.noError(k.Unlock(w.Context()))
		w.noError(its.mustLock(10 * trip).Unlock(w.Context()))
		w.noError(mine.mustLock(time.Second).Unlock(w.Context()))
	}},
	{"of a lock that lingers", func(w *cluster, _, other *peer) {
		p := w.peer("lingers", redlock.WithLinger(time.Hour))
		idle(w, p)
		w.requestRelease(other.Locker, "n")
		after(5 * trip)
		if w.on("n") > 0 {
			w.Error("an idle lock was not released")
		}
		k := must(p.Lock(w.Context(), "n"))(w)
		c := k.ReleaseRequested()
		after(5 * trip)
		w.requestRelease(other.Locker, "n")
		if !requested(c) {
			w.Error("the request has not arrived")
		}
		w.noError(k.Unlock(w.Context()))
	}},
	{"of an exported lock", func(w *cluster, p, other *peer) {
		k := must(p.Lock(w.Context(), "n"))(w)
		c, id := k.ReleaseRequested(), w.idOf("n")
		after(5 * trip)
		text := must(k.Export())(w)
		w.notify("n", id, true)
		w.notify("n", id, false)
		imported := must(other.Import(w.Context(), text))(w)
		after(5 * trip)
		if requested(c) || requested(imported.ReleaseRequested()) || imported.Err() != nil {
			w.Errorf("a request for the exported lock has arrived: %v", imported.Err())
		}
		w.noError(imported.Unlock(w.Context()))
	}},
	{"while it is unlocked", func(w *cluster, p, other *peer) {
		for range 20 {
			k := must(p.Lock(w.Context(), "n"))(w)
			k.ReleaseRequested()
			after(5 * trip)
			done, id := make(chan struct{}), w.idOf("n")
			go func() {
				defer close(done)
				w.noError(k.Unlock(w.Context()))
			}()
			w.notify("n", id, true)
			w.notify("n", id, false)
			<-done
		}
	}},
	{"of readers", func(w *cluster, p, other *peer) {
		one, two := must(p.RWLock("n").RLock(w.Context()))(w), must(other.RWLock("n").RLock(w.Context()))(w)
		after(2 * time.Second)
		equal(w, w.requestRelease(other.Locker, "n"), 2, "readers with the request")
		for _, k := range []*redlock.Lock{one, two} {
			if !requested(k.ReleaseRequested()) {
				w.Error("a reader has not received the request")
			}
			w.noError(k.Unlock(w.Context()))
		}
	}},
	{"before a local handoff", func(w *cluster, p, other *peer) {
		w.delay(time.Millisecond)
		k := must(p.Lock(w.Context(), "n"))(w)
		c := k.ReleaseRequested()
		next := make(chan string)
		for _, of := range []*peer{other, p} { // other is ahead of p in the queue
			go func() {
				k := must(of.Lock(w.Context(), "n"))(w)
				next <- of.id
				w.noError(k.Unlock(w.Context()))
			}()
			after(10 * time.Millisecond)
		}
		if w.requestRelease(other.Locker, "n"); !requested(c) {
			w.Error("the holder has no request")
		}
		w.noError(k.Unlock(w.Context()))
		if first := <-next; first != other.id {
			w.Errorf("%s has the lock first: the holder handed it off locally despite the request", first)
		}
		<-next
		after(trip)
	}},
}

// A request for a release reaches the present holders of the name, and no holder of another lock.
func TestReleaseRequested(t *testing.T) {
	for _, c := range requestCases {
		subtest(t, c.name, 5, func(w *cluster) {
			w.delay(trip / 2)
			c.run(w, w.peer("p"), w.peer("other"))
			if w.queued("n") > 0 || w.on("n") > 0 {
				w.Error("the name is not free")
			}
		})
	}
}

// Inspect reports the masters that have the lock, and the waiters in their order, with their labels.
func TestInspectShowsHolderAndQueue(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		if who, err := look.Inspect(w.Context(), "n"); err != nil || who.ID != "" || who.N != 5 || len(who.Waiters) != 0 {
			w.Errorf("Inspect of a free name returned %+v, %v", who, err)
		}
		k := must(w.locker(redlock.WithLabel("holder")).Lock(w.Context(), "n"))(w)
		w.goLock(w.Context(), w.peer("b"), "n").mustWait()
		w.goLock(w.Context(), w.peer("a"), "n").mustWait()
		who, err := look.Inspect(w.Context(), "n")
		if err != nil || who.Label != "holder" || who.Token != k.Token() || who.On != 5 ||
			who.Left <= 0 || len(who.Waiters) != 2 {
			w.Fatalf("Inspect returned %+v, %v", who, err)
		}
		for i, want := range []string{"b", "a"} {
			got := who.Waiters[i]
			if got.Label != want || got.On != 5 || time.Since(got.Since) < time.Duration(2-i)*time.Second ||
				time.Since(got.Since) > 3*time.Second {
				w.Errorf("the waiter in place %d is %+v, want %q", i, got, want)
			}
		}
		w.stop(0, 1)
		after(time.Second)
		if who, err := look.Inspect(w.Context(), "n"); err != nil || who.On != 3 || who.N != 5 {
			w.Errorf("with two masters down Inspect returned %+v, %v", who, err)
		}
		w.stop(2)
		after(time.Second)
		w.isError(errOf(look.Inspect(w.Context(), "n")), redlock.ErrNoQuorum)
	})
}

// The error and the log of a lock that was released by force say by whom. A message that only claims it ends nothing.
func TestForcedReleaseSaysByWhom(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		k := must(w.locker(book.option()).Lock(w.Context(), "n"))(w)
		after(2 * time.Second) // the holder listens
		id := must(w.locker().Inspect(w.Context(), "n"))(w).ID
		keys := defaultPrefix.KeysOf("n", scripts.Plain)
		for i := range 3 {
			must(w.do(i, defaultPrefix.NotifyForced(&keys, id, "liar")))(w)
		}
		after(redlock.DefaultTTL)
		if err := k.Err(); err != nil {
			w.Fatalf("a false message has ended the lock: %v", err)
		}
		operator := w.locker(redlock.WithObserver(), redlock.WithLabel("alice@ops/17"))
		must(admin.Of(operator).ForceRelease(w.Context(), "n", id))(w)
		after(time.Second)
		const want = `"alice@ops/17" has released it by force`
		if err := k.Err(); !errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), want) {
			w.Errorf("the lock has ended with %v, want ErrLost with %s", err, want)
		}
		if text := strings.Join(book.since(), "\n"); !strings.Contains(text, "alice@ops/17") {
			w.Errorf("the log does not say who has released the lock:\n%s", text)
		}
	})
}

// A forced release raises the fence above the token of the lease on each master that it reaches, once. If these masters
// are no quorum, ForceRelease returns ErrNoQuorum.
func TestForcedReleaseRaisesFence(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		k := must(w.locker().Lock(w.Context(), "n"))(w)
		who := must(look.Inspect(w.Context(), "n"))(w)
		w.stop(3, 4)
		after(time.Second)
		before := []scripts.Holding{w.holding(0, "n"), w.holding(1, "n"), w.holding(2, "n")}
		if n, err := admin.Of(look).ForceRelease(w.Context(), "n", who.ID); n != 3 || err != nil {
			w.Fatalf("ForceRelease returned %d masters, %v, want 3", n, err)
		}
		for i, was := range before {
			if h := w.holding(i, "n"); h.ID != "" || h.Fence <= was.Fence || was.Fence < k.Token() {
				w.Errorf("master %d: %+v; before the forced release %+v", i, h, was)
			}
		}
		if n, err := admin.Of(look).ForceRelease(w.Context(), "n", who.ID); n != 0 || err != nil {
			w.Errorf("the second call released the lease on %d masters, %v", n, err)
		}
		w.stop(2)
		after(time.Second)
		w.isError(errOf(admin.Of(look).ForceRelease(w.Context(), "n", who.ID)), redlock.ErrNoQuorum)
		for _, id := range []string{"", "x", "a:b:c"} {
			w.isError(errOf(admin.Of(look).ForceRelease(w.Context(), "n", id)), redlock.ErrInvalid)
		}
	})
}

// holding returns the state of a name on master i.
func (w *cluster) holding(i int, name string) scripts.Holding {
	w.Helper()
	keys := defaultPrefix.Keys(name)
	reply := must(w.do(i, scripts.NewEncoder(defaultPrefix, 0).Inspect(&keys, 0)))(w)
	return must(scripts.DecodeHolding(reply))(w)
}

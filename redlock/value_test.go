package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// shows fails the test unless Inspect of l reports this value of name.
func (w *cluster) shows(l client, name, value string) {
	w.Helper()
	who := w.inspect(l, name)
	if who.Value != value {
		w.Errorf("the value of %s is %q, want %q: %+v", name, who.Value, value, who)
	}
}

func (w *cluster) setValue(k *redlock.Lock, value string) {
	w.Helper()
	w.must(k.SetValue(w.Context(), value))
}

// valueCases are the ways in which a lock with a value ends. The value must not be reported for the next holder.
var valueCases = []struct {
	name string
	end  func(w *cluster, p *peer, k *redlock.Lock)
}{
	{"released", func(w *cluster, p *peer, k *redlock.Lock) {
		w.unlock(k)
		w.shows(p, "n", "")
		w.unlock(w.take(p, "n"))
	}},
	{"handed off", func(w *cluster, p *peer, k *redlock.Lock) {
		next := w.call(w.Context(), p, "n", unpolled)
		w.unlock(k)
		k = next.gets(time.Second)
		w.shows(p, "n", "")
		w.unlock(k)
	}},
	{"kept by WithMinHold", func(w *cluster, p *peer, k *redlock.Lock) {
		w.unlock(k)
		k = w.take(p, "n", redlock.WithMinHold(5*time.Second))
		w.setValue(k, "second")
		w.unlock(k)
		if who, err := p.Inspect(w.Context(), "n"); err != nil || !who.Kept || who.Value != "" {
			w.Errorf("Inspect of a kept name returned %+v, %v", who, err)
		}
		after(6 * time.Second)
	}},
	{"taken by force", func(w *cluster, p *peer, k *redlock.Lock) {
		w.force(p.Locker, "n")
		w.shows(p, "n", "")
		_ = k.Unlock(w.Context())
	}},
	{"imported", func(w *cluster, p *peer, k *redlock.Lock) {
		other := w.peer("other")
		handle := w.export(k)
		w.shows(p, "n", "first")
		k = w.imported(other, handle)
		w.shows(p, "n", "")
		w.setValue(k, "third")
		w.shows(p, "n", "third")
		w.unlock(k)
	}},
	{"expired", func(w *cluster, p *peer, _ *redlock.Lock) {
		dead := w.peer("dead")
		k := w.take(dead, "m")
		w.setValue(k, "second")
		dead.kill()
		after(redlock.DefaultTTL + time.Second)
		w.shows(p, "m", "")
	}},
}

func TestValueEndsWithLock(t *testing.T) {
	for _, c := range valueCases {
		subtest(t, c.name, 5, func(w *cluster) {
			p := w.peer("p")
			k := w.take(p, "n")
			w.setValue(k, "first")
			w.shows(p, "n", "first")
			c.end(w, p, k)
			k = w.take(p, "o")
			w.shows(p, "o", "")
			w.unlock(k)
		})
	}
}

// A value that a quorum has stored is reported by any quorum of the masters, even if masters with an older value
// answer, too. The other masters get the value with the next extension, or with the lock itself. A value that no
// quorum has stored yet also reaches all masters in this way.
func TestValueReachesAllMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		k := w.take(w.locker(), "n", redlock.WithExtension(false))
		have := func(values ...string) {
			w.Helper()
			synctest.Wait() // SetValue waits only for a quorum
			for i, value := range values {
				if h := w.holding(i, "n"); h.ID == "" || h.Value != value {
					w.Errorf("master %d has the value %q, want %q", i, h.Value, value)
				}
			}
		}
		w.setValue(k, "first")
		have("first", "first", "first", "first", "first")
		w.hang(3, 4)
		w.setValue(k, "second")
		w.shows(look, "n", "second")
		w.each(func(_ int, m *memory.Master) { m.CutConnections() }, 3, 4)
		w.resume(3, 4)
		after(time.Second)
		have("second", "second", "second", "first", "first")
		if who := w.inspect(look, "n"); who.On != 5 || who.Value != "second" {
			w.Errorf("Inspect returned %+v", who)
		}
		w.masters.Master(0).Evict("n")
		w.must(k.Extend(w.Context()))
		have("second", "second", "second", "second", "second")
		w.hang(0, 1, 2)
		w.isError(k.SetValue(w.Context(), "third"), redlock.ErrNoQuorum)
		w.resume(0, 1, 2)
		after(2 * time.Second)
		w.must(k.Extend(w.Context()))
		have("third", "third", "third", "third", "third")
		w.setValue(k, "")
		have("", "", "", "", "")
		w.unlock(k)
	})
}

// An old message that arrives once more does not change the value.
func TestLateValueIsIgnored(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		p := w.peer("p")
		k := w.take(p, "n")
		for _, value := range []string{"first", "second", "third"} {
			w.setValue(k, value)
		}
		synctest.Wait()
		for _, s := range p.cluster.wire.sent("extend") {
			w.replay(s)
			if h := w.holding(s.master, "n"); h.Value != "third" {
				w.Errorf("master %d has the value %q, want \"third\"", s.master, h.Value)
			}
		}
		w.unlock(k)
		for _, s := range p.cluster.wire.sent("extend") {
			w.replay(s)
		}
		w.nothingLeft("n")
	})
}

// Each kind of call for a plain lock gives its function a lock that has a value; a re-entry sets the value of the
// lock.
func TestEachKindOfLockHasValue(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		set := func(value string) func(context.Context, *redlock.Lock) error {
			return func(ctx context.Context, lock *redlock.Lock) error {
				w.must(lock.SetValue(ctx, value))
				if lock.Slot() == 0 {
					w.shows(l, lock.Name(), value)
					return nil
				}
				i, err := l.Inspect(ctx, lock.Name())
				w.must(err)
				equal(w, i.Slots[lock.Slot()-1].Value, value, "value of a slot")
				return nil
			}
		}
		w.must(l.Do(w.Context(), "n", set("do")))
		w.must(l.TryDo(w.Context(), "n", set("try do")))
		w.must(l.Lead(w.Context(), "n", set("lead")))
		w.must(l.Semaphore("s", 1).Do(w.Context(), set("slot")))
		w.must(l.DoAll(w.Context(), []string{"a", "b"}, func(ctx context.Context, locks *redlock.Locks) error {
			return errors.Join(set("one")(ctx, locks.Of("a")), set("other")(ctx, locks.Of("b")))
		}))
		w.must(l.Do(w.Context(), "n", func(ctx context.Context, _ *redlock.Lock) error {
			return l.Do(ctx, "n", set("inner"), redlock.WithReentry())
		}))
	})
}

// An invalid value, and a lock that cannot have a value, are refused before anything is sent.
func TestInvalidValueIsRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k, ended := w.take(l, "n"), w.take(l, "m")
		w.unlock(ended)
		reader := w.rlock(l.RWLock("r"))
		before := w.count("extend")
		for what, err := range map[string]error{
			"too long":  k.SetValue(w.Context(), strings.Repeat("x", 1025)),
			"not UTF-8": k.SetValue(w.Context(), "\xff"),
			"a reader":  reader.SetValue(w.Context(), "x"),
		} {
			w.Log(what, err)
			w.isError(err, redlock.ErrInvalid)
		}
		w.isError(ended.SetValue(w.Context(), "x"), redlock.ErrReleased)
		equal(w, w.count("extend")-before, 0, "extensions")
		w.must(k.SetValue(w.Context(), strings.Repeat("x", 1024)))
		w.shows(l, "n", strings.Repeat("x", 1024))
		w.unlock(reader)
		w.unlock(k)
	})
}

// SetValue is reported as a call, also if it is refused, if its outcome is not known, or if the lock has been lost
// before.
func TestTraceReportsValues(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var c calls
		l := w.locker(redlock.WithTrace(c.trace()))
		k := w.take(l, "n")
		reported := func(err, is error) {
			t.Helper()
			w.isError(err, is)
			i := c.last()
			if i.Op != "set value" || i.Name != "n" || i.Token != k.Token() || !errors.Is(i.Err, is) ||
				(is == nil) != (i.Err == nil) {
				w.Errorf("SetValue returned %v, and its event is %+v", err, i)
			}
		}
		reported(k.SetValue(w.Context(), "v1"), nil)
		reported(k.SetValue(w.Context(), strings.Repeat("x", 1025)), redlock.ErrInvalid)
		over, cancel := context.WithCancel(w.Context())
		cancel()
		for i := range 2 {
			w.masters.Master(i).Hang()
		}
		reported(k.SetValue(over, "v2"), context.Canceled)
		after(20 * time.Second) // the lock is lost
		reported(k.SetValue(w.Context(), "v3"), redlock.ErrLost)
	})
}

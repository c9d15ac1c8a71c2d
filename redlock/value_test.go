package redlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// valueCases are the ways in which a lock with a value ends. The value must not be reported for the next holder.
var valueCases = []struct {
	name string
	end  func(w *cluster, p *peer, k *redlock.Lock)
}{
	{"released", func(w *cluster, p *peer, k *redlock.Lock) {
		w.noError(k.Unlock(w.Context()))
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "", "value")
		w.noError(p.Do(w.Context(), "n", nothing))
	}},
	{"handed off", func(w *cluster, p *peer, k *redlock.Lock) {
		next := w.goLock(w.Context(), p, "n", unpolled)
		w.noError(k.Unlock(w.Context()))
		k = next.mustLock(time.Second)
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "", "value")
		w.noError(k.Unlock(w.Context()))
	}},
	{"kept by WithMinHold", func(w *cluster, p *peer, k *redlock.Lock) {
		w.noError(k.Unlock(w.Context()))
		k = must(p.Lock(w.Context(), "n", redlock.WithMinHold(5*time.Second)))(w)
		w.must(k.SetValue(w.Context(), "second"))
		w.noError(k.Unlock(w.Context()))
		if who, err := p.Inspect(w.Context(), "n"); err != nil || !who.Kept || who.Value != "" {
			w.Errorf("Inspect of a kept name returned %+v, %v", who, err)
		}
		after(6 * time.Second)
	}},
	{"taken by force", func(w *cluster, p *peer, k *redlock.Lock) {
		w.forceRelease(p.Locker, "n")
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "", "value")
		_ = k.Unlock(w.Context())
	}},
	{"imported", func(w *cluster, p *peer, k *redlock.Lock) {
		other := w.peer("other")
		handle := must(k.Export())(w)
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "first", "value")
		k = must(other.Import(w.Context(), handle))(w)
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "", "value")
		w.must(k.SetValue(w.Context(), "third"))
		equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "third", "value")
		w.noError(k.Unlock(w.Context()))
	}},
	{"expired", func(w *cluster, p *peer, _ *redlock.Lock) {
		dead := w.peer("dead")
		k := must(dead.Lock(w.Context(), "m"))(w)
		w.must(k.SetValue(w.Context(), "second"))
		dead.kill()
		after(redlock.DefaultTTL + time.Second)
		equal(w, must(p.Inspect(w.Context(), "m"))(w).Value, "", "value")
	}},
}

func TestValueEndsWithLock(t *testing.T) {
	for _, c := range valueCases {
		subtest(t, c.name, 5, func(w *cluster) {
			p := w.peer("p")
			k := must(p.Lock(w.Context(), "n"))(w)
			w.must(k.SetValue(w.Context(), "first"))
			equal(w, must(p.Inspect(w.Context(), "n"))(w).Value, "first", "value")
			c.end(w, p, k)
			k = must(p.Lock(w.Context(), "o"))(w)
			equal(w, must(p.Inspect(w.Context(), "o"))(w).Value, "", "value")
			w.noError(k.Unlock(w.Context()))
		})
	}
}

// A value that a quorum has stored is reported by any quorum of the masters, even if masters with an older value
// answer, too. The other masters get the value with the next extension, or with the lock itself. A value that no
// quorum has stored yet also reaches all masters in this way.
func TestValueReachesAllMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		k := must(w.locker().Lock(w.Context(), "n", redlock.WithExtension(false)))(w)
		have := func(values ...string) {
			w.Helper()
			synctest.Wait() // SetValue waits only for a quorum
			for i, value := range values {
				if h := w.holding(i, "n"); h.ID == "" || h.Value != value {
					w.Errorf("master %d has the value %q, want %q", i, h.Value, value)
				}
			}
		}
		w.must(k.SetValue(w.Context(), "first"))
		have("first", "first", "first", "first", "first")
		w.hang(3, 4)
		w.must(k.SetValue(w.Context(), "second"))
		equal(w, must(look.Inspect(w.Context(), "n"))(w).Value, "second", "value")
		w.cutConnections(3, 4)
		w.resume(3, 4)
		after(time.Second)
		have("second", "second", "second", "first", "first")
		if who := must(look.Inspect(w.Context(), "n"))(w); who.On != 5 || who.Value != "second" {
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
		w.must(k.SetValue(w.Context(), ""))
		have("", "", "", "", "")
		w.noError(k.Unlock(w.Context()))
	})
}

// An invalid value, and a lock that cannot have a value, are refused before anything is sent.
func TestInvalidValueIsRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k, ended := must(l.Lock(w.Context(), "n"))(w), must(l.Lock(w.Context(), "m"))(w)
		w.noError(ended.Unlock(w.Context()))
		reader := must(l.RWLock("r").RLock(w.Context()))(w)
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
		equal(w, must(l.Inspect(w.Context(), "n"))(w).Value, strings.Repeat("x", 1024), "value")
		w.noError(reader.Unlock(w.Context()))
		w.noError(k.Unlock(w.Context()))
	})
}

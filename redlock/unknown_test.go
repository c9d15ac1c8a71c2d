package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// H163: a name is free only if a majority of the masters votes and has no lease of it. Otherwise the masters that do
// not vote may have forgotten the lease of a client that still holds the name, and Inspect does not say that the name
// is free.
func TestInspectSaysFreeOnlyByVotes(t *testing.T) {
	for _, c := range []struct {
		name        string
		lost        []int // restart empty
		down        []int
		partial     int // masters that still have the lease
		quarantined int
	}{
		{"a majority has forgotten it", []int{2, 3, 4}, nil, 2, 3},
		{"all have forgotten it", []int{0, 1, 2, 3, 4}, nil, 0, 5},
		{"two have forgotten it, and one is down", []int{1, 2}, []int{0}, 2, 2},
		{"one has forgotten it, and two are down", []int{4}, []int{2, 3}, 2, 1},
	} {
		subtest(t, c.name, 5, func(w *cluster) {
			l := w.locker()
			w.masters.Take("pay", 30*time.Second) // the holder is paused: it extends nothing
			if i := must(l.Inspect(w.Context(), "pay"))(w); i.ID == "" || i.Free {
				w.Fatalf("the name is held, but Inspect returned %+v", i)
			}
			w.restart(false, c.lost...)
			for _, i := range c.down {
				w.stop(i)
			}
			after(time.Second)
			for _, l := range []*redlock.Locker{l, w.locker()} {
				i := must(l.Inspect(w.Context(), "pay"))(w)
				on := 0
				if len(i.Partial) > 0 {
					on = i.Partial[0].On
					if left := i.Partial[0].Left; i.Partial[0].Label != "stranger" || left < 28*time.Second || left > 30*time.Second {
						w.Errorf("the lease is shown as %+v", i.Partial[0])
					}
				}
				if i.ID != "" || i.Free || on != c.partial || i.Quarantined != c.quarantined {
					w.Errorf("Inspect returned %+v, want not free, %d masters with the lease, %d in quarantine", i,
						c.partial, c.quarantined)
				}
				if i := must(l.Inspect(w.Context(), "another"))(w); i.Free || i.Quarantined != c.quarantined {
					w.Errorf("Inspect of a name without a lease returned %+v, want not free", i)
				}
			}
			for _, i := range c.down {
				w.restart(true, i)
			}
			after(time.Minute)
			if i := must(l.Inspect(w.Context(), "pay"))(w); !i.Free || len(i.Partial) != 0 || i.Quarantined != 0 {
				w.Errorf("after the quarantine Inspect returned %+v, want free", i)
			}
		})
	}
}

// H163: a minority in quarantine hides a name only if the voting masters without the lease are no majority.
func TestInspectWithAMinorityInQuarantine(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "pay"))(w)
		r := must(l.RWLock("read").RLock(w.Context()))(w)
		w.restart(false, 4)
		after(time.Second)
		if i := must(l.Inspect(w.Context(), "free"))(w); !i.Free || i.Quarantined != 1 || i.Answered != 5 || i.On != 0 {
			w.Errorf("Inspect of a free name returned %+v", i)
		}
		if i := must(l.Inspect(w.Context(), "pay"))(w); i.ID == "" || i.Free {
			w.Errorf("Inspect of a held name returned %+v", i)
		}
		if i := must(l.Inspect(w.Context(), "read"))(w); i.ReaderCount != 1 || i.Free || len(i.Partial) != 0 {
			w.Errorf("Inspect of a read name returned %+v", i)
		}
		w.noError(k.Unlock(w.Context()), r.Unlock(w.Context()))
		if i := must(l.Inspect(w.Context(), "pay"))(w); !i.Free {
			w.Errorf("Inspect after the release returned %+v", i)
		}
	})
}

// H163: a server that loses its data while a client is connected may have forgotten leases from that instant on, before
// the client has read the record again.
func TestInspectAfterFlush(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		w.masters.Take("pay", 30*time.Second)
		w.flush(0, 1)
		if i := must(l.Inspect(w.Context(), "pay"))(w); i.Free || i.Quarantined != 2 || len(i.Partial) != 1 {
			w.Errorf("Inspect returned %+v, want one lease, and two masters that may have forgotten it", i)
		}
	})
}

// H163: once a master has voted, neither an error nor the log advises to admit masters, because a client may hold a
// lock that the masters have forgotten. The advice is for new masters only.
func TestAdviceToAdmitIsForNewMasters(t *testing.T) {
	const advice = "redlock admit"
	try := func(w *cluster, l *redlock.Locker) string {
		return fmt.Sprint(errOf(l.TryLock(w.Context(), "other")), l.Healthy(w.Context()))
	}
	bubble(t, 5, func(w *cluster) {
		var h logbook
		l := w.locker(h.option())
		after(2 * time.Second)
		if text := try(w, l); !strings.Contains(text, advice) {
			w.Errorf("the error about new masters is %s", text)
		}
		h.wants(w, 1, "no lock can be acquired", advice)
	}, memory.Fresh())
	for name, c := range map[string]struct {
		keep bool
		lost []int
		late bool // the client starts after the loss
	}{
		"a majority":                          {false, []int{0, 1, 2}, false},
		"all":                                 {false, []int{0, 1, 2, 3, 4}, false},
		"a majority, before the client":       {false, []int{0, 1, 2}, true},
		"all with their data, before clients": {true, []int{0, 1, 2, 3, 4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 5, func(w *cluster) {
				var h logbook
				start := func() *redlock.Locker { return w.locker(h.option()) }
				var l *redlock.Locker
				if !c.late {
					l = start()
				}
				w.masters.Take("pay", 30*time.Second)
				w.restart(c.keep, c.lost...)
				if c.late {
					l = start()
				}
				after(5 * time.Second)
				if text := try(w, l); !strings.Contains(text, "quarantine") || strings.Contains(text, advice) {
					w.Errorf("the error is %s", text)
				}
				if h.logged("no lock can be acquired") == 0 || h.logged(advice) != 0 {
					w.Errorf("the log is %q", h.lines)
				}
			})
		})
	}
}

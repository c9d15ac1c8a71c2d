package redlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// client returns a Locker over the masters with these numbers, without waiting for them.
func (o *office) client(which ...int) *redlock.Locker {
	o.Helper()
	urls := make([]string, len(which))
	for k, i := range which {
		urls[k] = o.masters.URLs()[i]
	}
	return o.dial(urls, o.masters.Dial)
}

func (o *office) dial(
	urls []string, dialer func(context.Context, string, string) (net.Conn, error), opts ...redlock.Option,
) *redlock.Locker {
	o.Helper()
	p, err := pool.Open(urls, pool.WithDialer(dialer), transport.WithClock(clock.Runtime()))
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = p.Close() })
	l, err := redlock.New(p, append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)...)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = l.Close(context.WithoutCancel(o.Context())) })
	return l
}

// pass lets time pass.
func (o *office) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// records returns the admission records of all masters.
func (o *office) records() (all string) {
	for i := range o.masters.N() {
		all += first(o.masters.Master(i)) + "\n"
	}
	return all
}

// locks fails the test unless l gets a lock.
func (o *office) locks(what string, l *redlock.Locker) {
	o.Helper()
	k, err := l.Lock(o.within(10*time.Second), "free")
	if err != nil {
		o.Errorf("%s: %v", what, err)
		return
	}
	if err := k.Unlock(o.Context()); err != nil {
		o.Errorf("%s: %v", what, err)
	}
}

// H98: a client whose list differs in one master acquires nothing and writes nothing, and its error shows both lists.
func TestMasterList(t *testing.T) {
	t.Run("ReplacedMaster", func(t *testing.T) {
		operate(t, 4, func(o *office) {
			a := o.client(0, 1, 2)
			if err := a.Admin().Admit(o.within(time.Minute)); err != nil {
				o.Fatal(err)
			}
			b := o.client(0, 1, 3)
			o.pass(time.Minute)
			o.masters.Master(1).DropRequests(1)
			held, err := a.TryLock(o.Context(), "n")
			if err != nil {
				o.Fatal(err)
			}
			_, err = b.TryLock(o.Context(), "n")
			o.says(err, redlock.ErrMasterList, "redlock set", "?name=", "[master-1:6379 master-2:6379 master-3:6379]",
				"[master-1:6379 master-2:6379 master-4:6379]")
			err = b.Admin().Admit(o.within(time.Second))
			o.says(err, redlock.ErrMasterList)
			err = b.Admin().Quarantine(o.Context(), "master-1:6379")
			o.says(err, redlock.ErrMasterList)
			if first(o.masters.Master(3)) != "" || held.Err() != nil {
				o.Errorf("the refused client has written %q; the holder: %v", first(o.masters.Master(3)), held.Err())
			}
		}, memory.Fresh())
	})
	t.Run("AtOneInstant", func(t *testing.T) {
		for _, lists := range [][2][]int{
			{{0, 1, 2}, {0, 1, 3}}, {{2, 0, 1}, {1, 3, 0}}, {{0, 1, 2, 3, 4}, {0, 1, 2}}, {{0, 1, 2, 3, 4}, {4, 3}},
		} {
			for _, admit := range []bool{false, true} {
				operate(t, 5, func(o *office) {
					a, b := o.client(lists[0]...), o.client(lists[1]...)
					if admit {
						for _, l := range []*redlock.Locker{a, b} {
							go func() { _ = l.Admin().Admit(o.within(2 * time.Second)) }()
						}
					}
					o.pass(2 * time.Minute)
					ka, aErr := a.TryLock(o.Context(), "n")
					kb, bErr := b.TryLock(o.Context(), "n")
					if aErr == nil && bErr == nil && ka.Err() == nil && kb.Err() == nil {
						o.Errorf("%v, admit %v: both hold the name", lists, admit)
					}
					if bErr == nil && aErr == nil || !errors.Is(errors.Join(aErr, bErr), redlock.ErrMasterList) {
						o.Errorf("%v, admit %v: %v, %v", lists, admit, aErr, bErr)
					}
				}, memory.Fresh())
			}
		}
	})
	// A client of the second list reads the record of master 1 between two outages of that master, which it never loses.
	t.Run("ShortOutages", func(t *testing.T) {
		operate(t, 4, func(o *office) {
			a := o.client(0, 1, 2)
			if err := errors.Join(a.Admin().Admit(o.within(time.Minute)), a.Close(o.Context())); err != nil {
				o.Fatal(err)
			}
			o.masters.Master(1).Restart(false)
			o.masters.Master(0).Hang()
			b := o.client(0, 1, 3)
			o.pass(5 * time.Second) // the quarantines of masters 2 and 4 begin
			o.masters.Master(0).Resume()
			o.pass(20 * time.Second)
			o.masters.Master(0).Hang()
			o.pass(15 * time.Second) // and are over
			o.masters.Master(0).Resume()
			o.pass(15 * time.Second)
			o.locks("the first list", o.client(0, 1, 2))
			_, err := b.TryLock(o.Context(), "n")
			o.says(err, redlock.ErrMasterList)
		}, memory.Fresh())
	})
	t.Run("OrderAndNames", func(t *testing.T) {
		operate(t, 3, func(o *office) {
			o.locks("another order", o.client(2, 0, 1))
			var urls, wrong []string
			for _, u := range o.masters.URLs() {
				name := strings.TrimPrefix(u, "redis://")
				urls = append(urls, "redis://near-"+name+"?name="+name)
				wrong = append(wrong, "redis://near-"+name)
			}
			near := func(ctx context.Context, network, addr string) (net.Conn, error) {
				return o.masters.Dial(ctx, network, strings.TrimPrefix(addr, "near-"))
			}
			o.locks("other addresses, with names", o.dial(urls, near))
			_, err := o.dial(wrong, near).TryLock(o.Context(), "n")
			o.says(err, redlock.ErrMasterList, "near-master-1:6379")
		})
	})
}

// H98: a master that is down for a moment has not been down for a quarantine because the client was frozen or its wall
// clock was set forward.
func TestMasterListAndClocks(t *testing.T) {
	for what, leap := range map[string]func(o *office, c *shiftClock){
		"SetForward": func(_ *office, c *shiftClock) { c.jump(0, time.Minute) },
		"Frozen": func(o *office, c *shiftClock) {
			for i := range o.masters.N() {
				o.masters.Master(i).SetClock(time.Minute, 1)
			}
			c.jump(time.Minute, time.Minute)
		},
	} {
		t.Run(what, func(t *testing.T) {
			operate(t, 4, func(o *office) {
				a := o.client(0, 1, 2)
				if err := errors.Join(a.Admin().Admit(o.within(time.Minute)), a.Close(o.Context())); err != nil {
					o.Fatal(err)
				}
				o.masters.Master(1).Restart(false)
				o.masters.Master(0).Hang()
				c := newShiftClock(1)
				b := o.clocked(c, 0, 1, 3)
				o.pass(5 * time.Second) // the quarantines of masters 2 and 4 begin
				o.masters.Master(0).Resume()
				o.pass(30 * time.Second)
				o.masters.Master(0).Hang()
				o.pass(4 * time.Second)
				leap(o, c)
				o.pass(2 * time.Second)
				o.masters.Master(0).Resume()
				o.pass(2 * time.Second)
				o.locks("the first list", o.client(0, 1, 2))
				_, err := b.TryLock(o.Context(), "n")
				o.says(err, redlock.ErrMasterList)
			}, memory.Fresh())
		})
	}
}

// clocked returns a Locker like client, on a machine with its own clocks.
func (o *office) clocked(c *shiftClock, which ...int) *redlock.Locker {
	o.Helper()
	var urls []string
	for _, i := range which {
		urls = append(urls, o.masters.URLs()[i])
	}
	p, err := pool.Open(urls, pool.WithDialer(o.masters.Dial), transport.WithClock(c.clock()))
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = p.Close() })
	l, err := redlock.New(p, redlock.WithClock(c.clock()))
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = l.Close(context.WithoutCancel(o.Context())) })
	return l
}

// H104: a dead master whose last record names other masters stops no client that has seen it.
func TestStrayRecord(t *testing.T) {
	t.Run("OfDeadMaster", func(t *testing.T) {
		operate(t, 7, func(o *office) {
			a := o.client(0, 1, 2, 3, 4)
			if err := a.Admin().Admit(o.within(time.Minute)); err != nil {
				o.Fatal(err)
			}
			o.masters.Master(4).Stop()
			o.pass(2 * time.Second)
			stray := o.client(4, 5, 6)
			o.masters.Master(4).Restart(false)
			o.pass(5 * time.Second)
			o.locks("with the stray record", a)
			o.masters.Master(4).Stop()
			_ = stray.Close(o.within(time.Second))
			o.pass(10 * time.Minute)
			o.locks("ten minutes after it has died", a)
			o.locks("a new client", o.client(0, 1, 2, 3, 4))
		}, memory.Fresh())
	})
	// H124: so does one on a live master, and a command with a wrong list does not write it.
	t.Run("OfLiveMaster", func(t *testing.T) {
		operate(t, 5, func(o *office) {
			a := o.client(0, 1, 2, 3, 4)
			o.locks("before", a)
			before := o.records()
			err := o.client(0, 1, 2).Admin().Quarantine(o.Context(), "master-2:6379")
			o.says(err, redlock.ErrMasterList)
			if o.records() != before {
				o.Errorf("a refused quarantine has written\n%s", o.records())
			}
			list := "masters=master-1:6379,master-2:6379,master-3:6379"
			stray := strings.Replace(first(o.masters.Master(1)), list+",master-4:6379,master-5:6379", list, 1)
			o.masters.Master(1).Set("redlock:admission", "v3 0123456789abcdef"+stray[len("v3 0123456789abcdef"):])
			o.locks("with the stray record", a)
			o.masters.Master(0).Restart(false)
			o.pass(40 * time.Second)
			if s := a.Masters(); s[0].State != "voting" || s[1].State != "blocked" {
				o.Errorf("beside a stray record: %+v", s[:2])
			}
			if err := a.Admin().Quarantine(o.Context(), "master-2:6379"); err != nil {
				o.Fatal(err)
			}
			o.pass(40 * time.Second)
			if s := a.Masters()[1]; s.State != "voting" {
				o.Errorf("the stray record was replaced: %+v", s)
			}
			o.says(a.Admin().Quarantine(o.Context(), "elsewhere:1"), redlock.ErrInvalid, "elsewhere:1")
		})
	})
}

// H120: a client that does not follow the configuration admits no master.
func TestAdmitNowOfAnOldListWritesNothing(t *testing.T) {
	operate(t, 6, func(o *office) {
		urls := o.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:5], Next: urls[1:]}
		l := o.client(0, 1, 2, 3, 4)
		if err := errors.Join(l.Admin().Admit(o.within(time.Minute)), o.client(5).Admin().Admit(o.within(time.Minute)),
			l.Admin().Reconfigure(o.within(time.Minute), both), l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Fatal(err)
		}
		o.masters.Master(1).Restart(false)
		o.pass(5 * time.Second) // it is in quarantine
		if err := l.Close(o.within(time.Second)); err != nil {
			o.Fatal(err)
		}
		o.masters.Master(2).Restart(false)
		before := o.records()
		for _, plain := range [][]int{{0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}} {
			c := o.client(plain...)
			o.says(c.Admin().Admit(o.within(5*time.Second)), redlock.ErrOldMasters)
			o.pass(time.Minute)
			if got := o.records(); got != before {
				o.Errorf("%v has written\n%s\nover\n%s", plain, got, before)
			}
		}
	}, memory.Fresh())
}

// H98: after a change plain lists of the new masters work, also in clients that were there before.
func TestPlainListAfterAChange(t *testing.T) {
	operate(t, 4, func(o *office) {
		urls := o.masters.URLs()
		l := o.client(0, 1, 2)
		if err := errors.Join(l.Admin().Admit(o.within(time.Minute)),
			l.Admin().Reconfigure(o.within(2*time.Minute), redlock.Configuration{Epoch: 1, Masters: urls[:3], Next: urls[1:]}),
			l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Fatal(err)
		}
		early := o.client(1, 2, 3)
		_, err := early.TryLock(o.Context(), "n")
		o.says(err, redlock.ErrOldMasters)
		o.pass(2 * time.Minute)
		if err := errors.Join(l.FinishChange(o.within(time.Minute)),
			l.Admin().Reconfigure(o.within(time.Minute), redlock.Configuration{Epoch: 2, Masters: urls[1:]}),
			l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Fatal(err)
		}
		o.locks("a client that was early", early)
		late := o.client(3, 2, 1)
		o.locks("a new client", late)
		if late.Set().Epoch != 2 {
			o.Errorf("it follows %v", late.Set())
		}
		for i, plain := range [][]string{{urls[2], urls[3], urls[1]}, urls[:3]} { // as a file says that is followed
			err := late.Admin().Reconfigure(o.within(time.Minute), redlock.Configuration{Masters: plain})
			if (err == nil) != (i == 0) {
				o.Errorf("plain list %v: %v", plain, err)
			}
		}
		_, err = o.client(0, 1, 2).TryLock(o.Context(), "n")
		o.says(err, redlock.ErrOldMasters)
	}, memory.Fresh())
}

// H147: a change is aborted after its epoch was raised. Clients with the joint configuration, and a lock that one
// holds, continue on the old masters; the next masters can no longer become final.
func TestAbortChange(t *testing.T) {
	operate(t, 5, func(o *office) {
		urls := o.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:3], Next: urls[2:]}
		l := o.client(0, 1, 2)
		o.says(l.AbortChange(o.within(time.Minute)), redlock.ErrInvalid)
		if err := errors.Join(l.Admin().Admit(o.within(time.Minute)), l.Admin().Reconfigure(o.within(2*time.Minute), both),
			l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Fatal(err)
		}
		held, err := l.Lock(o.within(time.Minute), "held", redlock.WithTTL(30*time.Second))
		if err != nil {
			o.Fatal(err)
		}
		everywhere := func(want int) {
			for n := 0; n < want && held.Err() == nil; n, _ = held.HeldOn() {
				o.pass(100 * time.Millisecond)
			}
		}
		everywhere(5)
		before := o.records()
		for _, i := range []int{3, 4} {
			o.masters.Master(i).Stop()
		}
		o.pass(2 * time.Second)
		o.says(l.AbortChange(o.within(5*time.Second)), redlock.ErrNoQuorum)
		if o.records() != before {
			o.Errorf("a refused call has written\n%s", o.records())
		}
		for on, i := range []int{3, 4} { // the lock is confirmed by one before the other is back
			o.masters.Master(i).Restart(true)
			everywhere(4 + on)
		}
		o.says(l.AbortChange(o.within(5*time.Second)), redlock.ErrNoQuorum, "quarantine")
		o.pass(31 * time.Second) // the next masters vote again
		for range 2 {
			if err := l.AbortChange(o.within(time.Minute)); err != nil && l.Set().Epoch != 2 {
				o.Fatal(err)
			}
		}
		o.pass(time.Minute)
		if held.Err() != nil || l.Set().Epoch != 2 || len(l.Set().Next) != 0 {
			o.Errorf("the holder: %v; it follows %v", held.Err(), l.Set())
		}
		o.locks("the client", l)
		o.locks("a plain list of the old masters", o.client(0, 1, 2))
		late := o.dial(urls, o.masters.Dial, redlock.WithConfiguration(both))
		if err := late.FinishChange(o.within(5 * time.Minute)); err == nil {
			o.Error("the change that was given up is finished")
		}
		_, err = o.dial(urls[2:], o.masters.Dial, redlock.WithConfiguration(redlock.Configuration{Epoch: 2,
			Masters: urls[2:]})).
			TryLock(o.Context(), "n")
		o.says(err, redlock.ErrMasterList)
		again := redlock.Configuration{Epoch: 3, Masters: urls[:3], Next: urls[2:]}
		if err := errors.Join(l.Admin().Reconfigure(o.within(2*time.Minute), again),
			l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Errorf("the next change: %v", err)
		}
		o.locks("in the next change", l)
	}, memory.Fresh())
}

// A first start does not wait for a master that is down, hung, full, an hour off, or has no record of this version;
// also if no client lives as long as a quarantine.
func TestFirstStartBesideABadMaster(t *testing.T) {
	for what, spoil := range map[string]func(m *memory.Master){
		"stopped": (*memory.Master).Stop,
		"hung":    (*memory.Master).Hang,
		"full":    func(m *memory.Master) { m.Refuse("OOM command not allowed when used memory > 'maxmemory'.") },
		"hour":    func(m *memory.Master) { m.SetClock(time.Hour, 1) },
		"record":  func(m *memory.Master) { m.Set("redlock:admission", "hello") },
	} {
		t.Run(what, func(t *testing.T) {
			operate(t, 5, func(o *office) {
				spoil(o.masters.Master(4))
				began := time.Now()
				for err := redlock.ErrNoQuorum; err != nil; {
					if time.Since(began) > 2*time.Minute {
						o.Fatal(err)
					}
					l := o.client(0, 1, 2, 3, 4)
					_, err = l.Lock(o.within(15*time.Second), "n")
					_ = l.Close(o.Context())
				}
			}, memory.Fresh())
		})
	}
}

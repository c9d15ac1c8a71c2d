package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Admit lets masters vote without a quarantine. It waits until all masters vote or its context ends. In the second
// case the error names the masters that do not vote.
func TestAdmit(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		start := time.Now()
		w.masters.Master(2).Stop()
		l := w.locker()
		err := admin.Of(l).Admit(w.withTimeout(5 * time.Second))
		w.says(err, context.DeadlineExceeded, w.masters.Master(2).Addr(), "2 of 3")
		w.notError(err, redlock.ErrNoQuorum)
		must(l.Lock(w.Context(), "a", redlock.WithTries(1)))(w)
		must(w.locker().Lock(w.Context(), "b", redlock.WithTries(1)))(w)
		time.AfterFunc(5*time.Second, func() { w.restart(false, 2) })
		w.must(admin.Of(l).Admit(w.withTimeout(time.Minute)))
		w.wantSince(start, 15*time.Second)
		w.flush(0, 1) // an idle client still considers them voting
		w.must(admin.Of(l).Admit(w.withTimeout(time.Minute)))
		w.each(func(i int, m *memory.Master) {
			if text := recordOf(m); !strings.Contains(text, "state=admitted") {
				w.Errorf("master %d has the record %q", i, text)
			}
		})
	}, memory.Fresh())
}

// H80: the max TTL is raised in two steps. If one master cannot be written, no master accepts a longer TTL, but the
// others already have the longer quarantine. H120: if one master is known to be down, nothing is written. H70: until
// the max TTL is raised, a longer TTL is refused immediately, and the error names the command that raises it.
func TestRaiseMaxTTL(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		w.masters.Master(4).Stop()
		after(3 * time.Second)
		before := w.records()
		w.says(admin.Of(l).RaiseMaxTTL(w.withTimeout(time.Minute), 5*time.Minute), redlock.ErrNoQuorum,
			w.masters.Master(4).Addr(),
			"4 of 5", "quorum is 5")
		w.wantRecords(before)
		w.restart(true, 4)
		after(40 * time.Second)
		w.masters.Master(4).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
		w.says(admin.Of(l).RaiseMaxTTL(w.withTimeout(time.Minute), 5*time.Minute), redlock.ErrNoQuorum,
			w.masters.Master(4).Addr(),
			"4 of 5", "quorum is 5", "OOM")
		w.masters.Master(4).Refuse("")
		w.masters.Master(4).Stop()
		after(3 * time.Second)
		for i := range 5 {
			text, _ := w.masters.Master(i).Get("redlock:admission")
			if !strings.Contains(text, "maxttl=30000 ") || strings.Contains(text, "quarantine=300000") != (i < 4) {
				w.Errorf("master %d after the first call: %s", i, text)
			}
		}
		long := w.locker(redlock.WithMaxTTL(5 * time.Minute))
		start, ttl := time.Now(), redlock.WithTTL(4*time.Minute)
		w.says(errOf(long.Lock(w.withTimeout(time.Minute), "a", ttl)), redlock.ErrTTLTooLong, "redlock max-ttl --set")
		w.wantSince(start, 0)
		w.restart(false, 4)
		after(5 * time.Second)
		w.must(admin.Of(l).RaiseMaxTTL(w.withTimeout(time.Minute), 5*time.Minute))
		for _, m := range admin.Of(l).Masters() {
			if m.MaxTTL != 5*time.Minute {
				w.Errorf("the max TTL is not 5 min: %+v", m)
			}
		}
		after(3 * time.Second)
		must(long.Lock(w.Context(), "a", ttl))(w)
		before = w.records() // invalid values are refused before anything is written
		for g, word := range map[time.Duration]string{
			time.Minute: "5m0s", 2 * time.Hour: "repl-backlog-ttl is 1h0m0s", 0: "0s", time.Hour + 1: "", 1000 * time.Hour: "",
		} {
			w.says(admin.Of(l).RaiseMaxTTL(w.Context(), g), redlock.ErrInvalid, word)
		}
		w.isError(admin.Of(w.locker(redlock.WithoutRestartGuard())).RaiseMaxTTL(w.Context(), time.Minute), redlock.ErrInvalid)
		w.wantRecords(before)
	})
}

// findings returns the subjects of the findings of Check.
func (w *cluster) findings(l *redlock.Locker) (about []string) {
	w.Helper()
	verdict := must(admin.Of(l).Check(w.Context()))(w)
	for _, f := range verdict.Findings {
		about = append(about, f.About)
	}
	return about
}

// The time until the masters vote is reported in the error, in the trace and in the findings of Check.
func TestTimeOfQuarantineIsReported(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var left []time.Duration
		l := w.locker(redlock.WithTrace(redlock.On("master", func(e redlockinfo.Event) {
			if e.State == "quarantine" {
				left = append(left, e.Left)
			}
		})))
		err := errOf(l.TryLock(w.Context(), "n"))
		w.isError(err, redlock.ErrQuarantine)
		w.says(err, redlock.ErrNoQuorum, "quarantine until 00:00:30 UTC by its clock, since ", "Admit")
		if len(left) != 3 || left[0] < 29*time.Second || left[0] > 31*time.Second {
			w.Errorf("the trace reports the remaining times %v, want three of about 30 s", left)
		}
		if about := w.findings(l); !slices.Equal(about, []string{"quorum", "quarantine", "quarantine", "quarantine"}) {
			w.Errorf("Check finds %v", about)
		}
		w.must(admin.Of(l).Admit(w.Context()))
		if about := w.findings(l); len(about) > 0 {
			w.Errorf("Check of voting masters found %v", about)
		}
		w.must(l.Close())
		w.isError(errOf(admin.Of(l).Check(w.Context())), redlock.ErrClosed)
	}, memory.Fresh())
}

func recordOf(m *memory.Master) string {
	text, _ := m.Get("redlock:admission")
	return text
}

// records returns the admission records of all masters.
func (w *cluster) records() (all string) {
	for i := range w.masters.N() {
		all += recordOf(w.masters.Master(i)) + "\n"
	}
	return all
}

// wantRecords fails the test unless the masters have these records.
func (w *cluster) wantRecords(want string) {
	w.Helper()
	if now := w.records(); now != want {
		w.Errorf("the records are\n%swant\n%s", now, want)
	}
}

// wantLocks fails the test unless l acquires and releases a lock.
func (w *cluster) wantLocks(what string, l *redlock.Locker) {
	w.Helper()
	k, err := l.Lock(w.withTimeout(10*time.Second), "free")
	if err != nil {
		w.Errorf("%s: Lock returned %v", what, err)
		return
	}
	w.noError(k.Unlock(w.Context()))
}

// H98: a client whose list differs in one master acquires nothing and writes nothing, and its error shows both lists.
func TestMasterList(t *testing.T) {
	subtest(t, "ReplacedMaster", 4, func(w *cluster) {
		a := w.newLocker(w.poolOf(0, 1, 2))
		w.must(admin.Of(a).Admit(w.withTimeout(time.Minute)))
		var book logbook
		b := w.newLocker(w.poolOf(0, 1, 3), book.option())
		after(time.Minute)
		book.wants(w, 1, "no lock can be acquired", "for=1 ", "mismatch",
			`hint="run redlock check with this list of masters: it shows the list in the records, and the next step"`)
		w.masters.Master(1).DropRequests(1)
		held := must(a.Lock(w.Context(), "n"))(w)
		synctest.Wait() // until master 1 has dropped the acquire, and no request of b
		_, err := b.TryLock(w.Context(), "n")
		w.says(err, redlock.ErrMasterList, "redlock set", "?name=", "[master-1:6379 master-2:6379 master-3:6379]",
			"[master-1:6379 master-2:6379 master-4:6379]")
		w.says(admin.Of(b).Admit(w.withTimeout(time.Second)), redlock.ErrMasterList)
		err = admin.Of(b).Quarantine(w.Context(), "master-1:6379")
		w.says(err, redlock.ErrMasterList)
		if recordOf(w.masters.Master(3)) != "" || held.Err() != nil {
			w.Errorf("the refused client has written %q; the holder: %v", recordOf(w.masters.Master(3)), held.Err())
		}
	}, memory.Fresh())
	t.Run("AtOneInstant", func(t *testing.T) {
		for _, lists := range [][2][]int{
			{{0, 1, 2}, {0, 1, 3}}, {{2, 0, 1}, {1, 3, 0}}, {{0, 1, 2, 3, 4}, {0, 1, 2}}, {{0, 1, 2, 3, 4}, {4, 3}},
		} {
			for _, admit := range []bool{false, true} {
				bubble(t, 5, func(w *cluster) {
					a, b := w.newLocker(w.poolOf(lists[0]...)), w.newLocker(w.poolOf(lists[1]...))
					if admit {
						for _, l := range []*redlock.Locker{a, b} {
							go func() { _ = admin.Of(l).Admit(w.withTimeout(2 * time.Second)) }()
						}
					}
					after(2 * time.Minute)
					ka, aErr := a.TryLock(w.Context(), "n")
					kb, bErr := b.TryLock(w.Context(), "n")
					if aErr == nil && bErr == nil && ka.Err() == nil && kb.Err() == nil {
						w.Errorf("%v, admit %v: both hold the name", lists, admit)
					}
					if bErr == nil && aErr == nil || !errors.Is(errors.Join(aErr, bErr), redlock.ErrMasterList) {
						w.Errorf("%v, admit %v: the calls returned %v and %v, want ErrMasterList once", lists, admit, aErr, bErr)
					}
				}, memory.Fresh())
			}
		}
	})
	subtest(t, "OrderAndNames", 3, func(w *cluster) {
		w.wantLocks("another order", w.newLocker(w.poolOf(2, 0, 1)))
		var urls, wrong []string
		for _, u := range w.masters.URLs() {
			name := strings.TrimPrefix(u, "redis://")
			urls = append(urls, "redis://near-"+name+"?name="+name)
			wrong = append(wrong, "redis://near-"+name)
		}
		near := func(ctx context.Context, network, addr string) (net.Conn, error) {
			return w.masters.Dial(ctx, network, strings.TrimPrefix(addr, "near-"))
		}
		w.wantLocks("other addresses, with names", w.newLocker(w.poolOver(urls, pool.WithDialer(near))))
		w.says(errOf(w.newLocker(w.poolOver(wrong, pool.WithDialer(near))).TryLock(w.Context(), "n")), redlock.ErrMasterList,
			"near-master-1:6379")
	})
}

// H98: client b, whose list differs in one master, reads the record of master 1 between two outages of that master,
// which never loses its record. In the second outage the quarantines end, or the client is frozen, or its wall clock is
// set forward, so that it must not conclude that the master was down for a whole quarantine.
func TestMasterListAndOutages(t *testing.T) {
	for what, second := range map[string]struct {
		after, ended time.Duration
		during       func(w *cluster, c *shiftClock)
	}{
		"QuarantineEnds": {20 * time.Second, 15 * time.Second, func(*cluster, *shiftClock) { after(9 * time.Second) }},
		"SetForward":     {30 * time.Second, 2 * time.Second, func(_ *cluster, c *shiftClock) { c.jump(0, time.Minute) }},
		"Frozen": {30 * time.Second, 2 * time.Second, func(w *cluster, c *shiftClock) {
			w.setClocks(time.Minute)
			c.jump(time.Minute, time.Minute)
		}},
	} {
		subtest(t, what, 4, func(w *cluster) {
			a := w.newLocker(w.poolOf(0, 1, 2))
			w.must(admin.Of(a).Admit(w.withTimeout(time.Minute)), a.Close())
			w.restart(false, 1)
			w.masters.Master(0).Hang()
			c := newShiftClock(1)
			b := w.newLocker(w.poolOver(w.urls(0, 1, 3), transport.WithClock(c.clock())), redlock.WithClock(c.clock()))
			after(5 * time.Second) // the quarantines of masters 2 and 4 begin
			w.masters.Master(0).Resume()
			after(second.after)
			w.masters.Master(0).Hang()
			after(4 * time.Second)
			second.during(w, c)
			after(2 * time.Second)
			w.masters.Master(0).Resume()
			after(second.ended)
			w.wantLocks("the first list", w.newLocker(w.poolOf(0, 1, 2)))
			w.says(errOf(b.TryLock(w.Context(), "n")), redlock.ErrMasterList)
		}, memory.Fresh())
	}
}

// Clients of two protocol versions, whose keys have different forms, exclude each other by the version of the admission
// record: a client counts no master whose record has another version, earlier or later, and neither overwrites that
// record, even after a quarantine, nor touches the keys of a lock. Its error names both versions.
func TestRecordsOfAnotherVersion(t *testing.T) {
	current, _, _ := strings.Cut(scripts.Record{}.String(), " ") // such as v4
	number, err := strconv.Atoi(current[1:])
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int{"Earlier": number - 1, "Later": number + 1} {
		subtest(t, what, 3, func(w *cluster) {
			record := fmt.Sprintf("v%d 0123456789abcdef id=a/b/7 masters=master-1:6379,master-2:6379,master-3:6379 epoch=0 "+
				"longest=30000 quarantine=30000 state=admitted since=%d", n, time.Now().UnixMicro())
			w.each(func(_ int, m *memory.Master) {
				m.Set("redlock:admission", record)
				m.Set("redlock:{n}:fence", "1700000000000000") // as the first version kept it
			})
			before := w.keys()
			l := w.newLocker(w.poolOf(0, 1, 2))
			for range 3 {
				after(time.Minute) // longer than a quarantine
				for _, err := range []error{
					errOf(l.TryLock(w.Context(), "n")), errOf(l.RWLock("n").TryRLock(w.Context())),
					admin.Of(l).Admit(w.withTimeout(5 * time.Second)),
				} {
					if text := fmt.Sprint(err); !strings.Contains(text, fmt.Sprintf(`has version "v%d"`, n)) ||
						!strings.Contains(text, "this client knows version "+current) {
						w.Errorf("the error is %v", err)
					}
				}
				for _, m := range admin.Of(l).Masters() {
					if m.State == "voting" {
						w.Errorf("a master with the record %s votes", record)
					}
				}
				if now := w.keys(); now != before {
					w.Errorf("the keys are\n%s\nwant\n%s", now, before)
				}
			}
		}, memory.Fresh())
	}
}

// keys returns the keys of all masters, and the texts of their records.
func (w *cluster) keys() (all string) {
	w.each(func(_ int, m *memory.Master) { all += fmt.Sprintln(m.Keys(), recordOf(m)) })
	return all
}

// H104: a dead master whose last record lists other masters does not block a client that has read that record.
func TestStrayRecord(t *testing.T) {
	subtest(t, "OfDeadMaster", 7, func(w *cluster) {
		a := w.newLocker(w.poolOf(0, 1, 2, 3, 4))
		w.must(admin.Of(a).Admit(w.withTimeout(time.Minute)))
		w.masters.Master(4).Stop()
		after(2 * time.Second)
		stray := w.newLocker(w.poolOf(4, 5, 6))
		w.restart(false, 4)
		after(5 * time.Second)
		w.wantLocks("with the stray record", a)
		w.masters.Master(4).Stop()
		_ = stray.Close()
		after(10 * time.Minute)
		w.wantLocks("ten minutes after it has died", a)
		w.wantLocks("a new client", w.newLocker(w.poolOf(0, 1, 2, 3, 4)))
	}, memory.Fresh())
	// H124: a stray record on a live master does not block clients either, and a command with a wrong list writes no
	// such record.
	subtest(t, "OfLiveMaster", 5, func(w *cluster) {
		a := w.newLocker(w.poolOf(0, 1, 2, 3, 4))
		w.wantLocks("before", a)
		before := w.records()
		w.says(admin.Of(w.newLocker(w.poolOf(0, 1, 2))).Quarantine(w.Context(), "master-2:6379"), redlock.ErrMasterList)
		w.wantRecords(before)
		list := "masters=master-1:6379,master-2:6379,master-3:6379"
		stray := strings.Replace(recordOf(w.masters.Master(1)), list+",master-4:6379,master-5:6379", list, 1)
		w.masters.Master(1).Set("redlock:admission", "v4 0123456789abcdef"+stray[len("v4 0123456789abcdef"):])
		w.wantLocks("with the stray record", a)
		w.restart(false, 0)
		after(40 * time.Second)
		if s := admin.Of(a).Masters(); s[0].State != "voting" || s[1].State != "blocked" {
			w.Errorf("with a stray record on one master: %+v", s[:2])
		}
		w.must(admin.Of(a).Quarantine(w.Context(), "master-2:6379"))
		after(40 * time.Second)
		if s := admin.Of(a).Masters()[1]; s.State != "voting" {
			w.Errorf("after the stray record was replaced: %+v", s)
		}
		w.says(admin.Of(a).Quarantine(w.Context(), "elsewhere:1"), redlock.ErrInvalid, "elsewhere:1")
	})
}

// H120: while the masters are being changed, Admit fails for a client with a plain list of the old or the next
// masters, and writes nothing.
func TestAdmitNowOfAnOldListWritesNothing(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		urls := w.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:5], Next: urls[1:]}
		l := w.newLocker(w.poolOf(0, 1, 2, 3, 4))
		w.must(admin.Of(l).Admit(w.withTimeout(time.Minute)),
			admin.Of(w.newLocker(w.poolOf(5))).Admit(w.withTimeout(time.Minute)),
			admin.Of(l).Reconfigure(w.withTimeout(time.Minute), both), client.SetOf(l).RaiseEpoch(w.withTimeout(time.Minute)))
		w.restart(false, 1)
		after(5 * time.Second) // the restarted master is in quarantine
		w.must(l.Close())
		w.restart(false, 2)
		before := w.records()
		for _, plain := range [][]int{{0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}} {
			c := w.newLocker(w.poolOf(plain...))
			w.says(admin.Of(c).Admit(w.withTimeout(5*time.Second)), redlock.ErrOldMasters)
			after(time.Minute)
			w.wantRecords(before)
		}
	}, memory.Fresh())
}

// H98: after a change, plain lists of the new masters work, also in clients that were started before the end of the
// change.
func TestPlainListAfterAChange(t *testing.T) {
	virtual(t, 4, func(w *cluster) {
		urls := w.masters.URLs()
		l := w.newLocker(w.poolOf(0, 1, 2))
		w.must(admin.Of(l).Admit(w.withTimeout(time.Minute)),
			admin.Of(l).Reconfigure(w.withTimeout(2*time.Minute), redlock.Configuration{Epoch: 1, Masters: urls[:3],
				Next: urls[1:]}),
			client.SetOf(l).RaiseEpoch(w.withTimeout(time.Minute)))
		early := w.newLocker(w.poolOf(1, 2, 3))
		w.says(errOf(early.TryLock(w.Context(), "n")), redlock.ErrOldMasters)
		after(2 * time.Minute)
		w.must(client.SetOf(l).FinishChange(w.withTimeout(time.Minute)),
			admin.Of(l).Reconfigure(w.withTimeout(time.Minute), redlock.Configuration{Epoch: 2, Masters: urls[1:]}),
			client.SetOf(l).RaiseEpoch(w.withTimeout(time.Minute)))
		w.wantLocks("a client that was early", early)
		late := w.newLocker(w.poolOf(3, 2, 1))
		w.wantLocks("a new client", late)
		if admin.Of(late).Configuration()[0].Epoch != 2 {
			w.Errorf("the new client uses %v", admin.Of(late).Configuration()[0])
		}
		for i, plain := range [][]string{{urls[2], urls[3], urls[1]}, urls[:3]} { // as in a file that is watched
			err := admin.Of(late).Reconfigure(w.withTimeout(time.Minute), redlock.Configuration{Masters: plain})
			if (err == nil) != (i == 0) {
				w.Errorf("Reconfigure to the plain list %v returned %v", plain, err)
			}
		}
		w.says(errOf(w.newLocker(w.poolOf(0, 1, 2)).TryLock(w.Context(), "n")), redlock.ErrOldMasters)
	}, memory.Fresh())
}

// A first start waits for a quarantine, also if no client runs as long as that, but not for a master that is down, hung
// or full, whose clock is an hour off, or whose record has another version.
func TestFirstStartDespiteBadMaster(t *testing.T) {
	for what, spoil := range map[string]func(m *memory.Master){
		"none":    func(*memory.Master) {},
		"stopped": (*memory.Master).Stop,
		"hung":    (*memory.Master).Hang,
		"full":    func(m *memory.Master) { m.Refuse("OOM command not allowed when used memory > 'maxmemory'.") },
		"hour":    func(m *memory.Master) { m.SetClock(time.Hour, 1) },
		"record":  func(m *memory.Master) { m.Set("redlock:admission", "hello") },
	} {
		subtest(t, what, 5, func(w *cluster) {
			spoil(w.masters.Master(4))
			began, lives := time.Now(), 15*time.Second
			if what == "none" {
				lives = 500 * time.Millisecond
			}
			for err := redlock.ErrNoQuorum; err != nil; after(time.Second) {
				if time.Since(began) > time.Minute {
					w.Fatal(err)
				}
				l := w.newLocker(w.poolOf(0, 1, 2, 3, 4))
				_, err = l.Lock(w.withTimeout(lives), "n")
				_ = l.Close()
			}
			if took := time.Since(began); took < 30*time.Second || took > 40*time.Second {
				w.Errorf("the quarantine took %v, want 30 to 40 s", took)
			}
		}, memory.Fresh())
	}
}

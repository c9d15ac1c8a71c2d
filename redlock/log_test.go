package redlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func TestLongHoldIsLoggedOnce(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var h logbook
		l := w.locker(h.option(), redlock.WithTTL(30*time.Second))
		w.noError(l.Do(w.Context(), "short", nothing))
		k := must(l.Lock(w.Context(), "forgotten"))(w)
		bounded := must(l.Lock(w.Context(), "bounded", redlock.WithMaxHold(5*time.Hour)))(w)
		ctx, cancel := context.WithCancel(w.Context())
		led := make(chan struct{})
		go func() {
			defer close(led)
			_ = l.Lead(ctx, "leader", func(ctx context.Context, _ *redlock.Lock) error { <-ctx.Done(); return nil })
		}()
		early := must(l.Lock(w.Context(), "early", redlock.WithHoldWarning(time.Minute)))(w)
		never := must(l.Lock(w.Context(), "never", redlock.WithHoldWarning(-1)))(w)
		after(2 * time.Minute)
		h.wants(w, 1, "held for long", "lock=early")
		after(7 * time.Minute)
		h.wants(w, 1, "held for long")
		after(time.Hour)
		h.wants(w, 2, "held for long")
		h.wants(w, 1, "held for long", "lock=forgotten", "token=", `hint="if`, "WithMaxHold")
		w.noError(early.Unlock(w.Context()))
		w.noError(never.Unlock(w.Context()))
		cancel()
		<-led
		w.noError(k.Unlock(w.Context()))
		w.noError(bounded.Unlock(w.Context()))
	})
}

// The log warns once about a call that waits for a lock of its own Locker with a context that never ends, because
// such a call may wait for itself. The error of a call that ends says that this Locker has the name.
func TestSelfDeadlockIsLogged(t *testing.T) {
	for op, call := range acquirers {
		if op == redlockinfo.OpLockAll || strings.HasPrefix(string(op), "try ") {
			continue // LockAll waits by Lock, and tries do not wait
		}
		subtest(t, string(op), 3, func(w *cluster) {
			var h logbook
			const text = "waits for a lock of this Locker"
			l := w.locker(h.option())
			k := w.holdAs(op, l, "n")
			err := call(w.withTimeout(time.Minute), l, "n")
			h.wants(w, 0, text)
			w.isError(err, context.DeadlineExceeded, redlock.ErrHeld)
			if !strings.Contains(err.Error(), ", by another call of this Locker; ") {
				w.Errorf("the error is %v", err)
			}
			deadlock := make(chan error, 1)
			go func() { deadlock <- call(context.Background(), l, "n", redlock.WithQuorumWait(time.Hour)) }()
			after(2 * time.Second)
			h.wants(w, 1, text, "lock=n", "held=", "pass the context of its lock")
			after(5 * time.Minute)
			h.wants(w, 1, text)
			w.noError(k.Unlock(w.Context()))
			w.noError(<-deadlock)
		})
	}
}

// A call that waits for a slot is no warning while another Locker has one of the slots.
func TestWaitForSlotOfAnotherIsNotLogged(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var h logbook
		l := w.locker(h.option())
		must(l.Semaphore("n", 2).Acquire(w.Context()))(w)
		k := must(w.locker().Semaphore("n", 2).Acquire(w.Context()))(w)
		got := make(chan error, 1)
		go func() { got <- errOf(l.Semaphore("n", 2).Acquire(context.Background())) }()
		after(time.Minute)
		h.wants(w, 0, "waits for a lock of this Locker")
		w.noError(k.Unlock(w.Context()), <-got)
	})
}

const outOfMemory = "OOM command not allowed when used memory > 'maxmemory'."

// noLog fails the test if lines were logged since the last call of b.since.
func (w *cluster) noLog(b *logbook) {
	w.Helper()
	if lines := b.since(); len(lines) != 0 {
		w.Errorf("unexpected lines in the log: %q", lines)
	}
}

// wantStates fails the test unless the states of the masters begin with these letters, in the order of the masters.
func (w *cluster) wantStates(l *redlock.Locker, initials string) {
	w.Helper()
	got := ""
	for _, m := range admin.Of(l).Masters() {
		got += string(m.State[:1])
	}
	if got != initials {
		w.Errorf("the states of the masters are %q, want %q", got, initials)
	}
}

var healthCases = []struct {
	name string
	run  func(w *cluster, l *redlock.Locker, h *logbook)
}{
	{"a Lock that gets no majority", func(w *cluster, l *redlock.Locker, h *logbook) {
		held := must(l.Lock(w.Context(), "held"))(w)
		waiting := w.goLock(w.Context(), l, "held")
		w.refuse(outOfMemory, 0, 1, 2)
		call := w.goLock(w.Context(), l, "n")
		after(1200 * time.Millisecond)
		if got := l.Stats().Waiting; got["held"] != 1 || got["no_quorum"] != 1 {
			w.Errorf("the waiting calls are %v, want one held and one no_quorum", got)
		}
		if h.logged("no lock can be acquired", "waiting=1", "OOM", "master-1") == 0 {
			w.Errorf("after a second the log does not report the outage: %q", h.lines)
		}
		w.wantStates(l, "fffvv")
		w.says(l.Healthy(w.Context()), redlock.ErrNoQuorum, "OOM")
		w.isError(l.WaitReady(w.withTimeout(5*time.Second)), redlock.ErrNoQuorum, context.DeadlineExceeded)
		w.refuse("", 0, 1, 2)
		k := call.mustLock(2 * time.Second)
		after(time.Second) // until the votes after the majority have arrived
		w.must(l.Healthy(w.Context()))
		w.wantStates(l, "vvvvv")
		h.wants(w, 3, "grants locks again")
		h.wants(w, 1, "locks can be acquired again", "for=")
		w.noError(k.Unlock(w.Context()), held.Unlock(w.Context()))
		w.noError(waiting.mustLock(time.Second).Unlock(w.Context()))
		if got := l.Stats().Waiting; got["held"] != 0 || got["no_quorum"] != 0 {
			w.Errorf("the waiting calls are %v, want none", got)
		}
	}},
	{"an idle client", func(w *cluster, l *redlock.Locker, h *logbook) {
		w.must(l.Healthy(w.Context()))
		w.refuse("NOPERM this user has no permissions to run the 'hset' command", 0, 1, 2)
		after(time.Minute)
		w.says(l.Healthy(w.Context()), redlock.ErrNoQuorum, "hset")
		w.refuse("", 0, 1, 2)
		after(6 * time.Second) // the client has probed the masters again
		w.wantStates(l, "vvvvv")
	}},
	{"a minority", func(w *cluster, l *redlock.Locker, h *logbook) {
		w.refuse(outOfMemory, 0, 1)
		w.must(l.Healthy(w.Context()))
		w.wantStates(l, "ffvvv")
		h.wants(w, 2, "master is failing", "OOM")
		h.wants(w, 0, "no lock can")
		w.refuse("", 0, 1)
		after(6 * time.Second)
		w.wantStates(l, "vvvvv")
	}},
	{"an error about one name", func(w *cluster, l *redlock.Locker, _ *logbook) {
		w.each(func(_ int, m *memory.Master) { m.SetFence("n", "no number") })
		w.isError(errOf(l.TryLock(w.Context(), "n")), redlock.ErrNoQuorum)
		w.must(l.Healthy(w.Context()))
		w.wantStates(l, "vvvvv")
	}},
	{"one probe in 30 s", func(w *cluster, l *redlock.Locker, _ *logbook) {
		before := w.count("acquire")
		for range 100 {
			w.must(l.Healthy(w.Context()))
			after(100 * time.Millisecond)
		}
		equal(w, w.count("acquire")-before, 5, "acquires by 100 checks within 10 s")
	}},
	{"no probe soon after a lock", func(w *cluster, l *redlock.Locker, _ *logbook) {
		w.noError(l.Do(w.Context(), "n", nothing))
		after(time.Second)
		before := w.count("acquire")
		w.must(l.Healthy(w.Context()))
		equal(w, w.count("acquire")-before, 0, "acquires")
	}},
	{"clocks that are off", func(w *cluster, l *redlock.Locker, h *logbook) {
		w.setClocks(time.Minute, 0, 1)
		w.stop(2)
		after(10 * time.Second)
		began := time.Now()
		err := errOf(l.TryLock(w.Context(), "n"))
		w.wantSince(began, 0)
		w.says(err, redlock.ErrNoQuorum, "clock", w.masters.Master(1).Addr())
		w.notError(err, redlock.ErrHeld)
		err = l.Healthy(w.Context())
		w.says(err, redlock.ErrNoQuorum, "clock")
		w.wantStates(l, "bbdvv")
		if h.logged("no lock can be acquired", "clock") == 0 {
			w.Errorf("the log does not report the clocks: %q", h.lines)
		}
	}},
}

// If masters are connected and admitted but grant no locks, Healthy, the states of the masters and the log report the
// problem.
func TestHealth(t *testing.T) {
	for _, c := range healthCases {
		subtest(t, c.name, 5, func(w *cluster) {
			h := &logbook{}
			c.run(w, w.locker(h.option()), h)
		})
	}
}

// H176: if the clock of a voting master is set forward or back by more than the window, the master loses its vote, and
// gets it back after a quarantine that begins when the clock is right.
func TestWrongClockIsLogged(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		var h logbook
		l := w.locker(h.option())
		w.noError(l.Do(w.Context(), "n", nothing))
		m := w.masters.Master(1)
		for n, c := range []struct {
			by   time.Duration
			text string
		}{{time.Minute, "its clock is 1m0s ahead of the median"}, {-time.Minute, "its clock is 1m0s behind the median"}} {
			m.SetClock(c.by, 1)
			after(10 * time.Second)
			h.wants(w, 1, "state=", m.Addr(), "state=blocked", c.text)
			w.wantStates(l, "vbvvv")
			m.SetClock(0, 1)
			after(10 * time.Second)
			w.wantStates(l, "vqvvv")
			h.wants(w, n, "master votes", m.Addr())
			after(30 * time.Second)
			h.wants(w, n+1, "master votes", m.Addr())
			w.wantStates(l, "vvvvv")
		}
	})
}

// Tests of the first experiences of a new user: masters that do not vote yet, held names, and the log.

// A logbook collects the log of a Locker, without the times.
type logbook struct {
	mu    sync.Mutex
	lines []string
	read  int // number of lines that since has returned
}

// Write implements io.Writer.
func (b *logbook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, strings.TrimSpace(string(line)))
	return len(line), nil
}

func (b *logbook) option() redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(io.MultiWriter(b, &overlong), withoutTime)))
}

// since returns the lines that were logged since its last call.
func (b *logbook) since() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines[b.read:]
	b.read = len(b.lines)
	return lines
}

// logged returns the number of lines that contain all of these texts.
func (b *logbook) logged(texts ...string) (n int) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

// wants fails the test unless n lines contain all of these texts.
func (b *logbook) wants(w *cluster, n int, texts ...string) {
	w.Helper()
	if got := b.logged(texts...); got != n {
		w.Errorf("%d lines of the log contain %q, want %d: %q", got, texts, n, b.lines)
	}
}

// H115: in JSON the list of masters contains only masters, and the hint is a separate attribute. A client that cannot
// acquire locks logs a warning after 1, 3, 7 and 15 s, until the masters vote.
func TestLogInJSON(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		w.locker(redlock.WithLogger(slog.New(slog.NewJSONHandler(&book, nil))), redlock.WithLabel("web-1"))
		after(900 * time.Millisecond)
		w.noLog(&book)
		after(200 * time.Millisecond)
		lines := book.since()
		if len(lines) != 1 {
			w.Fatalf("the log is %q, want one line", lines)
		}
		var line map[string]any
		w.must(json.Unmarshal([]byte(lines[0]), &line))
		delete(line, "time")
		masters, _ := line["masters"].([]any)
		delete(line, "masters")
		all := []string{w.masters.Master(0).Addr(), w.masters.Master(1).Addr(), w.masters.Master(2).Addr()}
		joined := []any{map[string]any{
			"master": strings.Join(all, ", "), "state": "quarantine", "left": 29.,
			"reason": "it has started, and may have forgotten locks",
		}}
		if !reflect.DeepEqual(masters, joined) {
			w.Errorf("the masters are %v, want %v", masters, joined)
		}
		want := map[string]any{
			"level": "WARN", "msg": "redlock: no lock can be acquired", "label": "web-1", "for": 1., "able": 0.,
			"needed": 2., "waiting": 0.,
			"hint": "if these masters are new, and no client can hold a lock on them, redlock admit (Admin.Admit) ends " +
				"their quarantine",
		}
		if !reflect.DeepEqual(line, want) {
			w.Errorf("the log is %v, want %v", line, want)
		}
		after(13500 * time.Millisecond)
		if lines := book.since(); len(lines) != 2 {
			w.Errorf("%d more lines in 14.6 s: %q", len(lines), lines)
		}
		after(30 * time.Second)
		book.since()
		after(5 * time.Minute)
		w.noLog(&book)
	}, memory.Fresh())
}

// The log says a thing once for all masters when five are new, full or away, and calls wait. TestMain checks that no
// line of any test has more than 500 bytes.
func TestLogSaysAThingOnce(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		var book logbook
		l := w.locker(book.option(), redlock.WithLabel("web-1"))
		go func() { _, _ = l.Lock(w.withTimeout(2*time.Minute), "x") }()
		check := func(want string, times int) {
			w.Helper()
			if text := strings.Join(book.since(), "\n"); strings.Count(text, want) != times {
				w.Errorf("the log lacks %q, or has it not %d times:\n%s", want, times, text)
			}
		}
		after(2 * time.Second)
		check("may have forgotten locks", 1)
		after(time.Minute)
		w.refuse(outOfMemory)
		go func() { _, _ = l.Lock(w.withTimeout(time.Minute), "y") }()
		after(10 * time.Second)
		check("no lock can be acquired", 6)
		w.refuse("")
		w.stop()
		after(10 * time.Second)
		check("master is down", 5)
	}, memory.Fresh())
}

// A client that starts while a master has no vote names it once, if the others are enough to acquire locks; otherwise
// the record that no lock can be acquired names it.
func TestMasterWithoutAVoteFromTheStartIsNamed(t *testing.T) {
	for restarted, want := range map[int]struct{ alone, alarms int }{1: {1, 0}, 2: {0, 2}} {
		t.Run(fmt.Sprint(restarted), func(t *testing.T) {
			virtual(t, 3, func(w *cluster) {
				for i := range restarted {
					w.masters.Master(i).Restart(false)
				}
				var book logbook
				w.newLocker(w.pool(), book.option())
				after(4 * time.Second)
				book.wants(w, want.alone, "master does not vote", "state=quarantine", "may have forgotten locks")
				book.wants(w, want.alarms, "no lock can be acquired", "may have forgotten locks")
				book.wants(w, want.alone+want.alarms)
			})
		})
	}
}

// A master that is back, but has refused its last calls, is not said to vote before it grants a lock.
func TestFailingMasterIsNotSaidToVote(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option())
		m := w.masters.Master(0)
		m.Refuse("MISCONF Redis is configured to save RDB snapshots")
		w.noError(l.Do(w.Context(), "x", nothing))
		after(time.Second)
		m.Stop()
		after(3 * time.Second)
		m.Restart(false)
		m.Refuse("")
		after(40 * time.Second)
		book.wants(w, 0, "master votes")
		book.wants(w, 1, "master is failing")
		book.wants(w, 1, "master grants locks again")
	})
}

// A server that closes its connections, for example after a change of passwords, is back at once: that is no warning.
func TestReconnectIsNoWarning(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		w.locker(book.option())
		after(time.Second)
		w.cutConnections()
		after(5 * time.Second)
		w.noLog(&book)
		w.masters.Master(0).Stop()
		after(5 * time.Second)
		if text := strings.Join(book.since(), "\n"); strings.Count(text, "master is down") == 0 {
			w.Errorf("the log lacks the master that is down: %s", text)
		}
	})
}

// In an outage one record tells of all releases that were not confirmed.
func TestOneRecordForManyUnconfirmedReleases(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option())
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				w.noError(l.Do(w.Context(), fmt.Sprint("n", i), func(context.Context, *redlock.Lock) error {
					time.Sleep(time.Second) // virtual time
					return nil
				}))
			})
		}
		after(500 * time.Millisecond)
		w.hang(0, 1)
		wg.Wait()
		after(2 * time.Second)
		var lines []string
		for _, line := range book.since() {
			if strings.Contains(line, "not confirmed") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], " count=100") {
			w.Errorf("the log has %d records, want one with count=100: %q", len(lines), lines)
		}
		w.resume()
		after(time.Minute)
	})
}

func TestLogReportsMastersAndLosses(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option(), redlock.WithLabel("web-1"))
		after(time.Second)
		w.noLog(&book)
		lock := must(l.Lock(w.Context(), "x"))(w)
		w.masters.Master(0).Stop()
		after(5 * time.Second)
		w.restart(false, 0)
		after(time.Minute)
		text := strings.Join(book.since(), "\n")
		for _, want := range []string{"master is down", "master does not vote", "master votes"} {
			if !strings.Contains(text, want) {
				w.Errorf("the log lacks %q:\n%s", want, text)
			}
		}
		lost := func(lock *redlock.Lock, why string) {
			w.Helper()
			<-lock.Done()
			synctest.Wait()
			text := strings.Join(book.since(), "\n")
			if !strings.Contains(text, `msg="redlock: lock was lost" label=web-1 lock=x token=`) ||
				!strings.Contains(text, why) {
				w.Errorf("the log lacks the loss or its cause %s:\n%s", why, text)
			}
			if err := lock.Err(); !errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), why) {
				w.Errorf("cause of the loss: %s; the lock ended with %v", why, err)
			}
		}
		w.masters.Lose("x")
		lost(lock, "too few masters still have it")

		lock = must(l.Lock(w.Context(), "x"))(w)
		w.stop(0, 1)
		lost(lock, "no majority extended it in time")

		w.restart(false, 0, 1)
		after(time.Minute)
		lost(must(l.Lock(w.Context(), "x", redlock.WithExtension(false)))(w), "its background extension is off")
	})
}

func TestWaitReadyErrorHasReasons(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		err := l.WaitReady(w.withTimeout(10 * time.Second))
		if !errors.Is(err, redlock.ErrNoQuorum) || !errors.Is(err, redlock.ErrQuarantine) ||
			!errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("during the quarantine WaitReady returned %v", err)
		}
		w.noError(l.WaitReady(w.Context()))
		w.noError(errOf(l.TryLock(w.Context(), "x")))
		w.noError(l.Close())
		w.isError(l.WaitReady(w.Context()), redlock.ErrClosed)
	}, memory.Fresh())
}

// A call fails at the instant at which the connections end. WaitReady then waits for the masters, although it may run
// before the Locker has noted that they are down.
func TestWaitReadyAfterOutage(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		w.noError(l.WaitReady(w.Context()))
		w.hang(0, 1, 2)
		w.isError(errOf(l.TryLock(w.Context(), "x")), redlock.ErrNoQuorum)
		w.isError(l.Healthy(w.Context()), redlock.ErrNoQuorum)
		w.resume(0, 1, 2)
		w.noError(l.WaitReady(w.Context()), errOf(l.TryLock(w.Context(), "x")))
	})
}

var remaining = regexp.MustCompile(`expires in [0-9.ms]+`)

// The errors of the most common mistakes have exactly these texts, which explain the mistakes.
func TestCommonMistakesAreExplained(t *testing.T) {
	bubble(t, 3, func(w *cluster) {
		l, other := w.locker(redlock.WithLabel("web-1")), w.locker(redlock.WithLabel("web-2"))
		after(time.Second)
		lock := must(l.Lock(w.Context(), "x"))(w)
		gone := w.pool()
		orphan := w.newLocker(gone)
		after(time.Second)
		_ = gone.Close()
		since := time.UnixMicro(lock.Token()).UTC().Format(time.DateTime + " MST")
		for _, one := range []struct {
			mistake string
			do      func() error
			want    string
		}{
			{"a TTL above the max TTL",
				func() error { return errOf(l.Lock(w.Context(), "z", redlock.WithTTL(time.Minute))) },
				"redlock: TTL 1m0s is above the max TTL 30s: a held lock is extended in the background, so it needs no long " +
					"TTL: leave it out; only if the name must stay locked for 1m0s after its holder has died, raise the max " +
					"TTL of the masters (redlock max-ttl --set 1m0s URL...), then that of all clients"},
			{"a TTL for a long job",
				func() error { return errOf(l.Lock(w.Context(), "z", redlock.WithTTL(48*time.Hour))) },
				"redlock: TTL 48h0m0s is above the max TTL 30s: a held lock is extended in the background, so it needs no " +
					"long TTL: leave it out"},
			{"locking again without the context of the lock",
				func() error { return errOf(l.Lock(w.withTimeout(time.Second), "x")) },
				`redlock: lock "x": context deadline exceeded (held already); held by "web-1" since ` +
					since + ", by another call of this Locker; expires in T unless extended"},
			{"a name that another holds",
				func() error { return errOf(other.TryLock(w.Context(), "x")) },
				`redlock: try lock "x": held by another; 0 of 3 masters agreed, quorum is 2; held by "web-1" since ` +
					since + "; expires in T unless extended"},
			{"a closed pool",
				func() error { return errOf(orphan.Lock(w.Context(), "x")) },
				`redlock: lock "x": the pool is closed; 0 of 3 masters can grant a lock, quorum is 2; ` +
					"master-1:6379, master-2:6379, master-3:6379: send: the pool is closed"},
		} {
			if err := one.do(); err == nil || remaining.ReplaceAllString(err.Error(), "expires in T") != one.want {
				w.Errorf("%s:\n%v\nwant:\n%s", one.mistake, err, one.want)
			}
		}
		_ = lock.Unlock(w.Context())
	})
	bubble(t, 3, func(w *cluster) {
		l := w.locker()
		after(time.Second)
		_, err := l.TryLock(w.Context(), "x")
		const want = `redlock: try lock "x": no quorum of masters; 0 of 3 masters can grant a lock, quorum is 2; ` +
			"master-1:6379, master-2:6379, master-3:6379: the master is in quarantine until 00:00:30 UTC by its clock, " +
			"since it started 1s ago, and may have forgotten locks; " +
			"if these masters are new, and no client can hold a lock on them, redlock admit (Admin.Admit) ends their " +
			"quarantine; if other clients use them, compare the prefix and the database with theirs"
		if err == nil || err.Error() != want {
			w.Errorf("new masters:\n%v\nwant:\n%s", err, want)
		}
	}, memory.Fresh())
}

// A record about a master that is down has the reason of that moment, not the one for which the connection has ended.
// The reason of a loss is what is wrong with the masters, without the consequences, and without advice.
func TestReasonsInTheLog(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option())
		w.masters.Master(0).Stop()
		after(5 * time.Second)
		equal(t, book.logged("master is down", `reason="connect: `), 1, "records of the master that is down")
		k := must(l.Lock(w.Context(), "x"))(w)
		w.masters.Master(1).SetRole("slave")
		<-k.Done()
		text := k.Err().Error()
		if !strings.Contains(text, ": it is a replica") || strings.Contains(text, "tolerated") ||
			strings.Contains(text, "master is down") || strings.Contains(text, "redlock check") {
			w.Errorf("the lock ended with %q", text)
		}
	})
}

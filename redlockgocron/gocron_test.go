package redlockgocron_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/robfig/cron/v3"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockgocron"
)

// interval is the time between two runs of the job.
const interval = 10 * time.Second

// A fleet is several programs that schedule the same job, on masters in memory.
type fleet struct {
	*testing.T
	masters *redlocktest.Masters

	mu     sync.Mutex
	runs   map[time.Time][]int // programs that ran the job, by the scheduled time
	tokens []int64
	errs   []error
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{T: t, masters: redlocktest.New(5), runs: make(map[time.Time][]int)}
	t.Cleanup(f.masters.Close)
	return f
}

// A shifted clock has a fixed error.
type shifted struct {
	clockwork.Clock
	by time.Duration
}

func (c shifted) Now() time.Time                  { return c.Clock.Now().Add(c.by) }
func (c shifted) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c shifted) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// locker returns a Locker of redlock for a program.
func (f *fleet) locker() *redlock.Locker {
	f.Helper()
	p := must.Get(f.masters.Pool())(f)
	f.Cleanup(func() { p.Close() })
	l := must.Get(redlock.New(p))(f)
	f.Cleanup(func() { l.Close() })
	return l
}

// program starts a program with the number i, whose clock is wrong by skew. The job takes the time work.
func (f *fleet) program(i int, skew, work time.Duration, opts ...redlockgocron.Option) {
	f.Helper()
	clock := shifted{clockwork.NewRealClock(), skew}
	schedule := redlockgocron.Every(interval)
	runs, err := redlockgocron.NewLocker(f.locker(), schedule, append(opts, redlockgocron.WithClock(clock.Now))...)
	if err != nil {
		f.Fatal(err)
	}
	task := runs.Task(func(ctx context.Context, lock *redlock.Lock) error {
		f.mu.Lock()
		at := clock.Now().Round(interval).UTC()
		if want := "report/" + at.Format(time.RFC3339); lock.Name() != want && !strings.HasPrefix(lock.Name(), want+":") {
			f.Errorf("the run of %v has the lock %q, want %q", at, lock.Name(), want)
		}
		f.runs[at] = append(f.runs[at], i)
		f.tokens = append(f.tokens, lock.Token())
		f.mu.Unlock()
		time.Sleep(work)
		return ctx.Err()
	})
	scheduler := must.Get(gocron.NewScheduler(gocron.WithClock(clock)))(f)
	f.Cleanup(func() { _ = scheduler.Shutdown() })
	failed := func(_ uuid.UUID, _ string, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errs = append(f.errs, err)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(interval), task, gocron.WithName("report"),
		gocron.WithDistributedJobLocker(runs), gocron.WithEventListeners(gocron.AfterLockError(failed)),
		gocron.WithStartAt(gocron.WithStartDateTime(schedule.Next(clock.Now()))))
	if err != nil {
		f.Fatal(err)
	}
	scheduler.Start()
}

// each checks that the job ran n times at each of the last scheduled times, and that every other try was refused.
func (f *fleet) each(n int) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.runs) < 5 {
		f.Errorf("the job ran at %d times, want at least 5: %v", len(f.runs), f.errs)
	}
	for at, programs := range f.runs {
		if len(programs) != n {
			f.Errorf("at %v the job was run by the programs %v, want %d of them", at, programs, n)
		}
	}
	for _, err := range f.errs {
		if !errors.Is(err, redlock.ErrHeld) {
			f.Error(err)
		}
	}
}

// A job of a millisecond runs in one or in two of three programs at each time, although their clocks differ by up to a
// second.
func TestProgramsPerTime(t *testing.T) {
	for _, n := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			for i := range 3 {
				f.program(i, time.Duration(i)*500*time.Millisecond, time.Millisecond, redlockgocron.WithPrograms(n))
			}
			time.Sleep(6*interval + interval/2) // between runs: the scheduler spins while it shuts down
			f.each(n)
			if n == 1 && (!slices.IsSorted(f.tokens) || f.tokens[0] <= 0) {
				t.Errorf("the tokens are %d, want ascending numbers", f.tokens)
			}
		})
	}
}

// A program whose clock is far from every scheduled time, and one whose clock leaves the splay while Lock waits, do not
// run the job. The name stays locked.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		locker := f.locker()
		now := time.Now().Truncate(interval)
		clock := func() time.Time { return now }
		runs, err := redlockgocron.NewLocker(locker, redlockgocron.Every(interval), redlockgocron.WithClock(clock),
			redlockgocron.WithSplay(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []time.Duration{3 * time.Second, -3 * time.Second} {
			now = now.Add(off)
			if _, err := runs.Lock(t.Context(), "report"); !errors.Is(err, redlockgocron.ErrLate) {
				t.Errorf("a Lock %v after its time returned %v, want ErrLate", off, err)
			}
			now = now.Add(-off)
		}
		at := now
		leaps := 0
		now = at.Add(-2 * time.Second)
		late, err := redlockgocron.NewLocker(locker, redlockgocron.Every(interval), redlockgocron.WithSplay(2*time.Second),
			redlockgocron.WithClock(func() time.Time {
				if leaps++; leaps > 2 { // NewLocker, and the first look of Lock
					return at.Add(3 * time.Second)
				}
				return now
			}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = late.Lock(t.Context(), "report")
		says(t, err, redlockgocron.ErrLate, `job "report"`, "3s after its time", "the splay of 2s", "once it had the lock")
		if _, err := runs.Lock(t.Context(), "report"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("the next Lock returned %v, want ErrHeld", err)
		}
	})
}

// While a run of the job continues, its program begins no other.
func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		now := time.Now()
		runs, err := redlockgocron.NewLocker(f.locker(), redlockgocron.Every(interval),
			redlockgocron.WithClock(func() time.Time { return now.Truncate(interval) }))
		if err != nil {
			t.Fatal(err)
		}
		lock := must.Get(runs.Lock(t.Context(), "report"))(t)
		now = now.Add(interval)
		_, err = runs.Lock(t.Context(), "report")
		says(t, err, redlockgocron.ErrRunning, `job "report"`, "a Locker of its own")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lock.Unlock(ended); err != nil {
			t.Errorf("Unlock with a context that has ended returned %v", err)
		}
		if lock, err = runs.Lock(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// One of two programs leads, and the other one takes over when it gives up.
func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		var mu sync.Mutex
		var ran []int // programs, in the order of their runs
		var electors []*redlockgocron.Elector
		var stops []func()
		for i := range 2 {
			e := redlockgocron.NewElector(f.locker(), "scheduler")
			scheduler := must.Get(gocron.NewScheduler(gocron.WithDistributedElector(e)))(t)
			defer func() { _ = scheduler.Shutdown() }()
			task := e.Task(func(ctx context.Context, lock *redlock.Lock) error {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, i)
				return errors.Join(ctx.Err(), lock.Err())
			})
			must.Get(scheduler.NewJob(gocron.DurationJob(300*time.Millisecond), task))(t)
			scheduler.Start()
			if err := e.IsLeader(t.Context()); !errors.Is(err, redlockgocron.ErrNotLeader) {
				t.Errorf("before Run, IsLeader returned %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- e.Run(ctx) }()
			stop := sync.OnceFunc(func() {
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v, want the error of its context", err)
				}
			})
			defer stop()
			electors, stops = append(electors, e), append(stops, stop)
			time.Sleep(time.Second)
		}
		leads := func(i int) {
			t.Helper()
			for k, e := range electors {
				if err := e.IsLeader(t.Context()); (err == nil) != (k == i) {
					t.Errorf("program %d should lead, but IsLeader of program %d returned %v", i, k, err)
				}
			}
		}
		leads(0)
		stops[0]()
		time.Sleep(2 * time.Second)
		leads(1)
		for i := range 3 { // without a majority nobody leads
			f.masters.Master(i).Hang()
		}
		time.Sleep(15 * time.Second)
		leads(-1)
		mu.Lock()
		defer mu.Unlock()
		if runs := slices.Compact(ran); !slices.Equal(runs, []int{0, 1}) {
			t.Errorf("the job was run by the programs %d, one after the other, want 0 and 1", runs)
		}
	})
}

// A schedule of robfig/cron has the times in the hour of the change by the clock on the wall: twice at the end of
// summer time, and not at all at its beginning. In some zones that hour is around midnight.
func TestSummerTime(t *testing.T) {
	for _, c := range []struct {
		zone, crontab, from string
		want                []string
	}{
		{"Europe/Berlin", "30 2 * * *", "2026-10-24",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		{"Europe/Berlin", "30 2 * * *", "2026-03-28", []string{"2026-03-30T02:30:00+02:00"}},
		{"America/Santiago", "30 23 * * *", "2026-04-03",
			[]string{"2026-04-03T23:30:00-03:00", "2026-04-04T23:30:00-03:00", "2026-04-04T23:30:00-04:00"}},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Skip(err)
		}
		daily := must.Get(cron.ParseStandard(c.crontab))(t)
		at := must.Get(time.ParseInLocation(time.DateOnly, c.from, zone))(t)
		at = at.Add(3 * time.Hour)
		for _, next := range c.want {
			at = daily.Next(at)
			if got := at.Format(time.RFC3339); got != next {
				t.Errorf("after %s the next time is %s, want %s", c.from, got, next)
			}
		}
	}
}

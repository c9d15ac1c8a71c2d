package redlockgocron_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockgocron"
)

// refused checks that err matches ErrInvalid, and that its text names the package once, and has all parts.
func refused(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("%s returned %v, want ErrInvalid", what, err)
		return
	}
	if text := err.Error(); !strings.HasPrefix(text, "redlockgocron: ") || strings.Count(text, "redlockgocron: ") > 1 {
		t.Errorf("the error of %s does not begin with the name of the package, or repeats it: %s", what, text)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error of %s lacks %q: %v", what, part, err)
		}
	}
}

// A stuck schedule has one time only.
type stuck time.Time

func (s stuck) Next(time.Time) time.Time { return time.Time(s) }

// Settings that cannot work are refused, with a text that names the setting.
func TestRefused(t *testing.T) {
	locker, _ := redlocktest.NewLocker(t, 1)
	never := must.Get(cron.ParseStandard("0 0 30 2 *"))(t)
	minute := redlockgocron.Every(time.Minute)
	once := stuck(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		schedule redlockgocron.Schedule
		opt      redlockgocron.Option
		part     string
	}{
		"a schedule without times": {never, redlockgocron.WithPrograms(1), "has no time after 20"},
		"a schedule that is stuck": {once, redlockgocron.WithPrograms(1), "must return a later time"},
		"Every(0)":                 {redlockgocron.Every(0), redlockgocron.WithPrograms(1), "Every(0s): "},
		"a negative interval":      {redlockgocron.Every(-time.Second), redlockgocron.WithPrograms(1), "Every(-1s): "},
		"a long splay":             {minute, redlockgocron.WithSplay(30 * time.Second), "WithSplay(30s)"},
		"a negative splay":         {minute, redlockgocron.WithSplay(-1), "WithSplay(-1ns)"},
		"a negative difference":    {minute, redlockgocron.WithApart(-1), "WithApart(-1ns)"},
		"no program":               {minute, redlockgocron.WithPrograms(0), "WithPrograms(0)"},
	} {
		_, err := redlockgocron.NewLocker(locker, c.schedule, c.opt)
		refused(t, "NewLocker with "+name, err, c.part)
	}
}

// Arguments that are nil are refused before a job runs.
func TestNil(t *testing.T) {
	locker, _ := redlocktest.NewLocker(t, 1)
	minute := redlockgocron.Every(time.Minute)
	_, err := redlockgocron.NewLocker(nil, minute)
	refused(t, "NewLocker without a Locker", err, "the redlock.Locker is nil")
	_, err = redlockgocron.NewLocker(locker, nil)
	refused(t, "NewLocker without a schedule", err, "the schedule is nil")
	for part, opt := range map[string]redlockgocron.Option{
		"option is nil":  nil,
		"WithClock(nil)": redlockgocron.WithClock(nil),
		"WithName(nil)":  redlockgocron.WithName(nil),
	} {
		_, err := redlockgocron.NewLocker(locker, minute, opt)
		refused(t, "NewLocker", err, part)
	}
	err = redlockgocron.NewElector(nil, "scheduler").Run(t.Context())
	refused(t, "Run of an Elector without a Locker", err, "NewElector", "the redlock.Locker is nil")

	runs := must.Get(redlockgocron.NewLocker(locker, minute))(t)
	for name, task := range map[string]func(){
		"Locker.Task":  func() { runs.Task(nil) },
		"Elector.Task": func() { redlockgocron.NewElector(locker, "scheduler").Task(nil) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				refused(t, "the panic of "+name, err, "the function of the task is nil")
			}()
			task()
		}()
	}
}

// NewLocker refuses what each Lock would refuse: a minimum hold above the max TTL, and too many programs. It sends
// nothing, and says which max TTL would do.
func TestMinHold(t *testing.T) {
	minute := redlockgocron.Every(time.Minute)
	splay, apart := redlockgocron.WithSplay, redlockgocron.WithApart
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 3)
		for i := range 3 {
			masters.Master(i).Hang()
		}
		began := time.Now()
		_, err := redlockgocron.NewLocker(locker, minute, splay(20*time.Second))
		refused(t, "NewLocker with a long splay", err, "minimum hold 41s", "30s", "WithSplay, 20s", "WithApart, 1s",
			"redlock max-ttl --set 42s", "redlock.WithMaxTTL(42s)")
		_, err = redlockgocron.NewLocker(locker, minute, apart(time.Minute))
		refused(t, "NewLocker with wrong clocks", err, "minimum hold 1m10s", "WithApart, 1m0s", "redlock.WithMaxTTL(1m11s)")
		for _, d := range []time.Duration{24 * time.Hour, math.MaxInt64} {
			_, err = redlockgocron.NewLocker(locker, minute, apart(d))
			refused(t, "NewLocker with the clocks of a museum", err, "shorten one of them")
			if err != nil && strings.Contains(err.Error(), "WithMaxTTL(") {
				t.Errorf("the error recommends a max TTL above the limit: %v", err)
			}
		}
		_, err = redlockgocron.NewLocker(locker, minute, redlockgocron.WithPrograms(1000))
		refused(t, "NewLocker for 1000 programs", err, "WithPrograms(1000)", "from 1 to 100")
		for _, k := range []int{1, 100} {
			if _, err := redlockgocron.NewLocker(locker, minute, redlockgocron.WithPrograms(k)); err != nil {
				t.Errorf("NewLocker for %d programs: %v", k, err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("NewLocker took %v while the masters hang, want no wait", took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // with the recommended max TTL the job runs
		locker, _ := redlocktest.NewLocker(t, 3, redlock.WithMaxTTL(42*time.Second))
		now := time.Now().Truncate(time.Minute)
		runs, err := redlockgocron.NewLocker(locker, minute, splay(20*time.Second),
			redlockgocron.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		lock := must.Get(runs.Lock(t.Context(), "report"))(t)
		if err := lock.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

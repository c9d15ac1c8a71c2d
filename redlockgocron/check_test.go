package redlockgocron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

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
	never, err := cron.ParseStandard("0 0 30 2 *")
	if err != nil {
		t.Fatal(err)
	}
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

	runs, err := redlockgocron.NewLocker(locker, minute)
	if err != nil {
		t.Fatal(err)
	}
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

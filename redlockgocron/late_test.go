package redlockgocron_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlockgocron"
)

// The errors of a call that runs no job say which job, when, how far from its time, and what to do.
func TestTexts(t *testing.T) {
	daily := must.Get(cron.ParseStandard("CRON_TZ=UTC 30 2 * * *"))(t)
	two := must.Get(cron.ParseStandard("CRON_TZ=UTC 0,10 9 * * *"))(t)
	for _, c := range []struct {
		schedule redlockgocron.Schedule
		now      string // the time of the call
		distance string
	}{
		{redlockgocron.Every(time.Minute), "12:00:17", "17s after its time 2026-11-28T12:00:00Z"},
		{redlockgocron.Every(time.Minute), "12:00:50", "10s before its time 2026-11-28T12:01:00Z"},
		{daily, "03:00:00", "30m0s after its time 2026-11-28T02:30:00Z"},
		{daily, "02:00:00", "30m0s before its time 2026-11-28T02:30:00Z"},
		{two, "09:14:00", "4m0s after its time 2026-11-28T09:10:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := must.Get(time.Parse(time.DateTime, "2026-11-28 "+c.now))(t)
			runs, err := redlockgocron.NewLocker(newFleet(t).locker(), c.schedule,
				redlockgocron.WithClock(func() time.Time { return now }))
			if err != nil {
				t.Fatal(err)
			}
			_, err = runs.Lock(t.Context(), "report")
			says(t, err, redlockgocron.ErrLate, `job "report" would start at 2026-11-28T`+c.now+"Z, ", c.distance,
				"the splay of 5s", "gocron.WithStartAt")
		})
	}
}

// says checks that err matches want, and that its text has all parts.
func says(t *testing.T, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("Lock returned %v, want %v", err, want)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

// The code in the documentation of the package starts the job at a time of its schedule, as that of the example does.
func TestDocStartsAtScheduledTime(t *testing.T) {
	const line = "gocron.WithStartAt(gocron.WithStartDateTime(minute.Next(time.Now())))"
	for _, file := range []string{"doc.go", "example_test.go"} {
		text := must.Get(os.ReadFile(file))(t)
		if !strings.Contains(string(text), line) {
			t.Errorf("%s lacks %s", file, line)
		}
	}
}

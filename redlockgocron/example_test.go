package redlockgocron_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockgocron"
)

var locker *redlock.Locker // one for all goroutines of the program

func report(ctx context.Context, lock *redlock.Lock) error {
	return ctx.Err() // the work, which sends lock.Token() with each write
}

// A job runs each minute, in one of all programs that run this code.
func ExampleLocker() {
	minute := redlockgocron.Every(time.Minute)
	runs, err := redlockgocron.NewLocker(locker, minute)
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Minute), runs.Task(report), gocron.WithName("report"),
		gocron.WithStartAt(gocron.WithStartDateTime(minute.Next(time.Now()))), gocron.WithDistributedJobLocker(runs),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, job string, err error) {
			if !errors.Is(err, redlock.ErrHeld) { // another program runs the job
				log.Print(job, ": ", err)
			}
		})))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

// A job runs every night at 02:30 in UTC.
func ExampleLocker_crontab() {
	const spec = "CRON_TZ=UTC 30 2 * * *"
	nightly, err := cron.ParseStandard(spec)
	if err != nil {
		log.Fatal(err)
	}
	runs, err := redlockgocron.NewLocker(locker, nightly)
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	task := runs.Task(func(ctx context.Context, lock *redlock.Lock) error { return report(ctx, lock) })
	_, err = scheduler.NewJob(gocron.CronJob(spec, false), task, gocron.WithName("report"),
		gocron.WithDistributedJobLocker(runs),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, job string, err error) {
			if !errors.Is(err, redlock.ErrHeld) { // another program runs the job
				log.Print(job, ": ", err)
			}
		})))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

// The leader runs the jobs of its scheduler.
func ExampleElector() {
	ctx, stop := context.WithCancel(context.Background())
	elector := redlockgocron.NewElector(locker, "scheduler")
	ended := make(chan error)
	go func() { ended <- elector.Run(ctx) }()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := scheduler.NewJob(gocron.DurationJob(time.Minute), elector.Task(report)); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	if elector.IsLeader(ctx) == nil {
		log.Print("this program is the leader")
	}
	// And at the end of the program:
	if err := scheduler.Shutdown(); err != nil {
		log.Print(err)
	}
	stop()
	log.Print(<-ended)
}

// In at most two programs, a job runs at each full minute, or up to ten seconds before or after it. Their clocks, which
// differ by at most two seconds, are ahead by a leap second.
func ExampleOption() {
	clock := func() time.Time { return time.Now().Add(time.Second) }
	if _, err := redlockgocron.NewLocker(locker, redlockgocron.Every(time.Minute),
		redlockgocron.WithPrograms(2),
		redlockgocron.WithSplay(10*time.Second),
		redlockgocron.WithApart(2*time.Second),
		redlockgocron.WithClock(clock),
		redlockgocron.WithName(func(job string, at time.Time) string { return job + at.UTC().Format("-15:04") }),
	); err != nil {
		log.Fatal(err)
	}
}

// Every returns the next full minute.
func ExampleEvery() {
	next := redlockgocron.Every(time.Minute).Next(time.Date(2026, time.November, 28, 12, 0, 59, 0, time.UTC))
	fmt.Println(next)
	// Output: 2026-11-28 12:01:00 +0000 UTC
}

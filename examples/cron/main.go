// Command cron runs a job at fixed times, each time on at most one of many hosts, even if the hosts' clocks differ.
//
//	cron -every 1m -file runs.txt redis://10.0.0.1:6379 redis://10.0.0.2:6379 redis://10.0.0.3:6379
//
// Start the command on several hosts. The job writes a line with the name and the token of the lock. See the README in
// this directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockgocron"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// jobName is the name of the job in gocron, and the prefix of the locked names.
const jobName = "report"

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("cron", flag.ContinueOnError)
	every := flags.Duration("every", time.Minute, "time between two runs")
	skew := flags.Duration("skew", 0, "simulated error of this host's clock")
	apart := flags.Duration("apart", 500*time.Millisecond, "largest difference between the clocks of two hosts")
	file := flags.String("file", "runs.txt", "file to which the job appends a line for each run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *every < 2*time.Millisecond {
		return fmt.Errorf("-every %v: must be at least 2ms", *every)
	}
	locker, err := redlock.Open(flags.Args())
	if err != nil {
		return err
	}
	defer locker.Close()
	clock := newSkewed(*skew)
	schedule := redlockgocron.Every(*every)
	runs, err := redlockgocron.NewLocker(locker, schedule, redlockgocron.WithApart(*apart),
		redlockgocron.WithClock(clock.Now))
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithClock(clock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scheduler.Shutdown()) }()
	tell := func(what any) { fmt.Println(clock.Now().Round(*every).Format(time.RFC3339Nano), what) }
	_, err = scheduler.NewJob(gocron.DurationJob(*every),
		runs.Task(func(_ context.Context, lock *redlock.Lock) error {
			tell("locked")
			return report(lock, *file)
		}),
		gocron.WithName(jobName), gocron.WithDistributedJobLocker(runs),
		gocron.WithStartAt(gocron.WithStartDateTime(schedule.Next(clock.Now()))),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { tell(err) })))
	if err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	return nil
}

// report does the job, which takes a millisecond.
func report(lock *redlock.Lock, file string) error {
	time.Sleep(time.Millisecond)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, lock.Name(), lock.Token()) // one write, so that lines of different programs do not mix
	return errors.Join(err, f.Close())
}

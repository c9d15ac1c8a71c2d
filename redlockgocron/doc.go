// Package redlockgocron lets several programs share the jobs of the scheduler gocron (v2).
//
// A [Locker] runs a job at most once at each scheduled time, in one of all programs, or in at most k of them:
//
//	minute := redlockgocron.Every(time.Minute)
//	runs, err := redlockgocron.NewLocker(locker, minute)
//	scheduler.NewJob(gocron.DurationJob(time.Minute), runs.Task(report), gocron.WithName("report"),
//		gocron.WithStartAt(gocron.WithStartDateTime(minute.Next(time.Now()))), gocron.WithDistributedJobLocker(runs))
//
// The job must start at the times of the schedule. If it starts further from them than the splay ([WithSplay]), each
// run fails with [ErrLate], which only a listener of [gocron.AfterLockError] shows: so a job without WithStartAt fails
// or not, depending on when its program was started. A DurationJob starts at such a time by WithStartAt, as above. A
// CronJob needs no WithStartAt, but a schedule of the same crontab.
//
// An [Elector] makes one program the leader, which runs all jobs of its scheduler.
//
// A lock that is held only while the job runs does not suffice, for three reasons. The Locker covers each:
//
//   - A job may take a millisecond, while the clocks of two hosts differ by half a second: when the second host wants
//     the lock, the first has unlocked it. So the masters keep the name locked for a minimum hold, even if the program
//     dies.
//   - A program that was stopped runs the job long after its time, when the minimum hold has ended. So each run has a
//     name of its own, such as "report/2026-11-28T12:00:00Z", and a program takes part only while its clock is within
//     the splay ([WithSplay]) of the scheduled time. It checks the clock again once it has the lock.
//   - All programs call at the same moment, so that each may get the votes of too few masters. So a call waits for up
//     to half the splay.
//
// All checks of the clock succeed within twice the splay, plus the difference between the clocks ([WithApart]): the
// minimum hold is that sum. It must fit into the max TTL of the deployment, so [NewLocker] refuses a longer one.
//
// Two things are not guaranteed. No job runs at a time at which no program could get the lock: the program that had it
// was killed, none was running, or no quorum of masters voted. A job that must run should look for unfinished work. And
// a program that is stopped between its check and its write may write late: the resource can reject the token of its
// lock once it has seen a larger one.
package redlockgocron

package redlockgocron

import (
	"context"
	"errors"
	"testing"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A task does not run under a leadership that has ended, even before Run has noticed the end, as in a program that was
// stopped.
func TestTaskAfterLeadership(t *testing.T) {
	locker, _ := redlocktest.NewLocker(t, 3)
	e := NewElector(locker, "scheduler")
	lock := must.Get(locker.Lock(t.Context(), "scheduler"))(t)
	e.term.Store(lock)
	must.Do(t, e.IsLeader(t.Context()))
	must.Do(t, lock.Unlock(t.Context()))

	scheduler := must.Get(gocron.NewScheduler())(t)
	defer func() { _ = scheduler.Shutdown() }()
	ended := make(chan error, 1)
	must.Get(scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		e.Task(func(context.Context, *redlock.Lock) error {
			t.Error("the task ran")
			return nil
		}),
		gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { ended <- err }))))(t)
	scheduler.Start()
	if err := <-ended; !errors.Is(err, ErrNotLeader) {
		t.Errorf("the task returned %v, want ErrNotLeader", err)
	}
}

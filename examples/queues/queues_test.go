package queues

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// While another client has the lock of a task of asynq, the task is not processed, and that is no failure.
func TestAsynq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 3)
		var tokens []int64
		mux := asynq.NewServeMux()
		mux.Use(exclusive(locker))
		mux.HandleFunc("pay", func(ctx context.Context, _ *asynq.Task) error {
			lock, _ := redlock.FromContext(ctx)
			tokens = append(tokens, lock.Token())
			return ctx.Err()
		})
		task := asynq.NewTask("pay", []byte("42"))
		masters.Take("pay:42", time.Minute)
		if err := mux.ProcessTask(t.Context(), task); !errors.Is(err, redlock.ErrHeld) || config.IsFailure(err) {
			t.Errorf("a task that another worker has returned %v, want ErrHeld, which is no failure", err)
		}
		masters.Free("pay:42")
		if err := mux.ProcessTask(t.Context(), task); err != nil || len(tokens) != 1 || tokens[0] <= 0 {
			t.Errorf("the task was processed with the tokens %d: %v", tokens, err)
		}
	})
}

// While another client has the lock of a job of river, the job returns to the queue.
func TestRiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 3)
		paid := 0
		worker := &payer{locker: locker, pay: func(_ context.Context, order int, token int64) error {
			if order != 42 || token <= 0 {
				t.Errorf("pay was called with the order %d and the token %d", order, token)
			}
			paid++
			return nil
		}}
		river.AddWorker(river.NewWorkers(), worker) // compiles, so payer is a Worker
		job := &river.Job[payment]{Args: payment{Order: 42}}
		masters.Take("orders:42", time.Minute)
		var snooze *river.JobSnoozeError
		if err := worker.Work(t.Context(), job); !errors.As(err, &snooze) {
			t.Errorf("a job that another worker has returned %v, want a snooze", err)
		}
		masters.Free("orders:42")
		if err := worker.Work(t.Context(), job); err != nil || paid != 1 {
			t.Errorf("the job paid %d times: %v", paid, err)
		}
	})
}

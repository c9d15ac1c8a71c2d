package queues

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
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

// asynq archives a task that fails on its last attempt, whatever IsFailure says. So such a task waits for the lock.
func TestAsynqLastAttempt(t *testing.T) {
	servers, urls := testmasters.Start(t, 1)
	locker, other := testmasters.Locker(t, urls), testmasters.Locker(t, urls)
	lock, err := other.Lock(t.Context(), "pay:42")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	mux := asynq.NewServeMux()
	mux.Use(exclusive(locker))
	mux.HandleFunc("pay", func(context.Context, *asynq.Task) error { close(done); return nil })
	redis := asynq.RedisClientOpt{Addr: servers[0].Addr()}
	client, inspector := asynq.NewClient(redis), asynq.NewInspector(redis)
	defer client.Close()
	defer inspector.Close()
	task, err := client.Enqueue(asynq.NewTask("pay", []byte("42")), asynq.MaxRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	config := config
	config.LogLevel = asynq.FatalLevel
	server := asynq.NewServer(redis, config)
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	redistest.Eventually(t, "the task waits for the lock", func() bool {
		if info, err := inspector.GetTaskInfo(task.Queue, task.ID); err == nil && info.State == asynq.TaskStateArchived {
			t.Fatal("the task was archived while another client held its lock: ", info.LastErr)
		}
		held, err := locker.Inspect(t.Context(), "pay:42")
		return err == nil && held.WaiterCount > 0
	})
	if err := lock.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the task was not processed")
	}
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

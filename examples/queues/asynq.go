// Package queues runs tasks of the queues asynq and river under a lock. A queue delivers a task at least once: after a
// crash or a lost connection two workers may have it.
package queues

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"

	"github.com/redlock-go/redlock/redlock"
)

// exclusive returns a middleware of asynq, for the method Use of its ServeMux. Of all tasks with the same type and
// payload, one at a time is processed. On its last attempt a task waits for the lock, until its timeout: asynq does not
// try it again, whatever IsFailure says.
func exclusive(locker *redlock.Locker) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			do := locker.TryDo
			retried, _ := asynq.GetRetryCount(ctx)
			if most, known := asynq.GetMaxRetry(ctx); known && retried >= most {
				do = locker.Do
			}
			return do(ctx, task.Type()+":"+string(task.Payload()), func(ctx context.Context, _ *redlock.Lock) error {
				return next.ProcessTask(ctx, task)
			})
		})
	}
}

// config makes asynq retry a task that another worker has, and not count that as a failure.
var config = asynq.Config{IsFailure: func(err error) bool {
	return !redlock.NotRun(err) || !errors.Is(err, redlock.ErrHeld) // a task that ran may have failed with an ErrHeld
}}

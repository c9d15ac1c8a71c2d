package queues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/redlock-go/redlock/redlock"
)

// payment is a job of river.
type payment struct {
	Order int `json:"order"`
}

// Kind implements river.JobArgs.
func (payment) Kind() string { return "payment" }

// A payer is a worker of river. Of all jobs for the same order, one at a time is worked.
type payer struct {
	river.WorkerDefaults[payment]
	locker *redlock.Locker
	pay    func(ctx context.Context, order int, token int64) error
}

// Work implements river.Worker. If another worker has the order, the job returns to the queue, and the attempt is not
// counted.
func (p *payer) Work(ctx context.Context, job *river.Job[payment]) error {
	name := fmt.Sprintf("orders:%d", job.Args.Order)
	err := p.locker.TryDo(ctx, name, func(ctx context.Context, lock *redlock.Lock) error {
		return p.pay(ctx, job.Args.Order, lock.Token())
	})
	if redlock.NotRun(err) && errors.Is(err, redlock.ErrHeld) {
		return river.JobSnooze(5 * time.Second)
	}
	return err
}

package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// errHandOver is the error of a leader that another process has requested to hand over.
var errHandOver = errors.New("the leadership is handed over on request")

// lead runs work while this process leads. On "redlock release --ask orders/leader", the context of work ends, another
// process leads as soon as work has returned, and this process is a standby again.
func lead(ctx context.Context, locker *redlock.Locker, work func(ctx context.Context, token int64) error) error {
	return locker.Lead(ctx, "orders/leader", func(ctx context.Context, lock *redlock.Lock) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		go func() {
			select {
			case <-lock.ReleaseRequested():
				stop(errHandOver)
			case <-ctx.Done():
			}
		}()
		if err := work(ctx, lock.Token()); err != nil {
			return err
		}
		return context.Cause(ctx) // nil if work is finished; with an error, Lead campaigns again
	})
}

// A leader that is asked for the leadership hands it over and is a standby until the next leader is asked.
func TestLeaderHandsOver(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		ctx, cancel := context.WithCancel(w.Context())
		terms, ended := make(chan string, 9), make(chan error, 2)
		var book logbook
		for _, name := range []string{"a", "b"} {
			l := w.locker(book.option(), redlock.WithLabel(name))
			go func() {
				ended <- lead(ctx, l, func(ctx context.Context, _ int64) error {
					terms <- name
					<-ctx.Done()
					return nil
				})
			}()
		}
		leader, operator := <-terms, admin.Of(w.peer("operator").Locker)
		for range 3 {
			after(5 * time.Second)
			if n, err := operator.RequestRelease(w.Context(), "orders/leader"); n != 1 || err != nil {
				w.Fatalf("%d holders were asked: %v", n, err)
			}
			began, next := time.Now(), <-terms
			if next == leader || time.Since(began) > time.Second {
				w.Errorf("%s leads after %s, %v after the request", next, leader, time.Since(began))
			}
			leader = next
		}
		book.wants(w, 3, "level=INFO", "leader resigned", "error=")
		book.wants(w, 0, "level=WARN")
		cancel()
		w.isError(<-ended, context.Canceled)
		w.isError(<-ended, context.Canceled)
	})
}

package main

import (
	"context"
	"log"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/redlock-go/redlock/redlock"
)

const (
	jobTime  = 20 * time.Millisecond
	jobPause = 100 * time.Millisecond
	waiting  = 2 * time.Second // the maximum time that a job waits for its lock
)

// work runs jobs and leads, until ctx ends.
func work(ctx context.Context, locker *redlock.Locker, tracer trace.Tracer) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range []string{"job:1", "job:1", "job:2", "job:2"} {
		all.Go(func() {
			for ctx.Err() == nil {
				job(ctx, locker, tracer, name)
				sleep(ctx, jobPause)
			}
		})
	}
	for ctx.Err() == nil {
		lead(ctx, locker)
		sleep(ctx, jobPause)
	}
}

// job runs a short task under a lock. Its span is the parent of the span of the lock, whose child is the span of the
// write.
func job(ctx context.Context, locker *redlock.Locker, tracer trace.Tracer, name string) {
	ctx, span := tracer.Start(ctx, "job")
	defer span.End()
	err := locker.Do(ctx, name, func(ctx context.Context) error {
		ctx, span := tracer.Start(ctx, "write")
		defer span.End()
		sleep(ctx, jobTime)
		return ctx.Err()
	}, redlock.WithWaitLimit(waiting))
	if err != nil && ctx.Err() == nil {
		log.Printf("%s: %s", name, redlock.Outcome(err))
	}
}

// lead holds a lock for as long as possible, like the leader of several clients.
func lead(ctx context.Context, locker *redlock.Locker) {
	_ = locker.Do(ctx, "leader", func(ctx context.Context) error {
		<-ctx.Done() // the lock is lost, or the program ends
		return context.Cause(ctx)
	})
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

package main

import (
	"context"
	"log"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockfile"
)

// open creates a Locker over the masters in the file config, or over the masters at urls if config is empty. Until ctx
// ends, the Locker applies changes of the file.
func open(ctx context.Context, config string, urls []string, opts ...redlock.Option) (*redlock.Locker, error) {
	if config == "" {
		return redlock.Open(urls, opts...)
	}
	locker, err := redlockfile.Open(config, opts...)
	if err == nil {
		go redlockfile.Follow(ctx, locker, config)
	}
	return locker, err
}

const (
	jobTime  = 20 * time.Millisecond
	jobPause = 100 * time.Millisecond
	waiting  = 2 * time.Second // maximum time for which a job waits for its lock
)

// work calls job and lead repeatedly until ctx ends.
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

// job runs a short task under a lock. The span of the job is the parent of the span of the lock, which is the parent
// of the span of the write.
func job(ctx context.Context, locker *redlock.Locker, tracer trace.Tracer, name string) {
	ctx, span := tracer.Start(ctx, "job")
	defer span.End()
	err := locker.Do(ctx, name, func(ctx context.Context, _ *redlock.Lock) error {
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
	_ = locker.Do(ctx, "leader", func(ctx context.Context, _ *redlock.Lock) error {
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

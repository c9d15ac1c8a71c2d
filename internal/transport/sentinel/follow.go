package sentinel

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// Period is the interval at which the sentinels are queried again, and each subscription to them is tested with PING.
const Period = 10 * time.Second

// Follow calls take with each place that Find returns: now, every [Period], and whenever a sentinel announces a
// failover, until ctx ends. It subscribes to all sentinels, because one that is partitioned away announces nothing.
func (f *Finder) Follow(ctx context.Context, take func(Place)) {
	news := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range f.Sentinels {
		wg.Go(func() {
			for ctx.Err() == nil {
				f.subscribe(ctx, &f.Sentinels[i], news)
				pause(ctx, time.Second)
			}
		})
	}
	for ctx.Err() == nil {
		if p, err := f.Find(ctx); err == nil {
			take(p)
		}
		t := time.NewTimer(Period)
		select {
		case <-news:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// subscribe wakes Follow for each announcement about the master, until the connection or ctx ends. It ends a connection
// that does not answer PING: a connection to a vanished server would otherwise stay open for hours.
func (f *Finder) subscribe(ctx context.Context, t *wire.Target, news chan<- struct{}) {
	c, _, err := t.Connect(ctx, func(c *wire.Conn) (string, error) {
		return c.Ask([]wire.Question{{
			Op: "subscribe", Command: []string{"SUBSCRIBE", "+switch-master"}, TakeFunc: wire.Refusal,
		}})
	})
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, c.Close)()
	defer c.Close()
	silent := time.AfterFunc(2*Period, c.Close)
	defer silent.Stop()
	wg.Go(func() {
		for ctx.Err() == nil {
			if c.Send("PING") != nil || c.Flush() != nil {
				return // Receive reports the error
			}
			pause(ctx, Period)
		}
	})
	for {
		value, err := c.Receive()
		if err != nil {
			return
		}
		silent.Reset(2 * Period)
		parts, _ := redis.Strings(value, nil)
		if len(parts) == 3 && parts[0] == "message" && strings.HasPrefix(parts[2], f.Name+" ") {
			select {
			case news <- struct{}{}:
			default: // a lookup is already pending
			}
		}
	}
}

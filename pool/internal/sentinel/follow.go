package sentinel

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/wire"
)

// Period is how often the sentinels are asked anew, and each connection that hears them is tried.
const Period = 10 * time.Second

// Follow calls f with each place that Find tells, now, every [Period], and at once when a sentinel announces a
// failover, until ctx ends. It hears all sentinels: one that is cut off announces nothing.
func (f *Finder) Follow(ctx context.Context, take func(Place)) {
	news := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range f.Sentinels {
		wg.Go(func() {
			for ctx.Err() == nil {
				f.hear(ctx, &f.Sentinels[i], news)
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

// hear wakes Follow for each announcement about the master, until the connection or ctx ends. A connection that does
// not answer PING is ended: that of a server that vanished would stay for hours.
func (f *Finder) hear(ctx context.Context, t *wire.Target, news chan<- struct{}) {
	c, _, err := t.Connect(ctx, func(c *wire.Conn) (string, error) {
		return c.Ask([]wire.Question{{
			Op: "subscribe", Command: []any{"SUBSCRIBE", "+switch-master"}, TakeFunc: func(reply any) error {
				if refusal, refused := reply.(redis.Error); refused {
					return refusal
				}
				return nil
			},
		}})
	})
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, c.Close)()
	defer c.Close()
	silent := time.AfterFunc(2*Period, c.Close)
	defer silent.Stop()
	for ctx.Err() == nil {
		pinged := time.AfterFunc(Period, func() { _ = errors.Join(c.Send("PING"), c.Flush()) }) // an error ends Receive
		value, err := c.Receive()
		pinged.Stop()
		if err != nil {
			return
		}
		silent.Reset(2 * Period)
		parts, _ := redis.Strings(value, nil)
		if len(parts) == 3 && parts[0] == "message" && strings.HasPrefix(parts[2], f.Name+" ") {
			select {
			case news <- struct{}{}:
			default: // it is being looked at already
			}
		}
	}
}

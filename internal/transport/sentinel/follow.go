package sentinel

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/transport/feed"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// Period is the interval at which the sentinels are queried again, and each subscription to them is tested with PING: a
// connection to a vanished server would otherwise stay open for hours.
const Period = 10 * time.Second

// Follow calls take with each place that Find returns: now, every [Period], and whenever a sentinel announces a
// failover, until ctx ends. It subscribes to all sentinels, because one that is partitioned away announces nothing.
func (f *Finder) Follow(ctx context.Context, take func(Place)) {
	var hub feed.Hub
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range f.Sentinels {
		wg.Go(hub.Add(ctx, feed.Source{
			Target: &f.Sentinels[i],
			Owner: pipe.Owner{
				Master: i, Timeout: Period, Heartbeat: Period, ExplainFunc: func(err error) error { return err },
			},
			Redial: wire.Pauses{Min: time.Second, Max: time.Second},
		}))
	}
	news := make(chan struct{}, 1)
	hub.Subscribe("+switch-master", &announcements{f.Name, news})
	for ctx.Err() == nil {
		if p, err := f.Find(ctx); err == nil {
			take(p)
		}
		select {
		case <-news:
		case <-time.After(Period):
		case <-ctx.Done():
		}
	}
}

// announcements wakes Follow for each failover of the master that a sentinel announces.
type announcements struct {
	name string
	news chan<- struct{}
}

// Message implements feed.Listener.
func (a *announcements) Message(_ int, _, payload string) {
	if strings.HasPrefix(payload, a.name+" ") {
		select {
		case a.news <- struct{}{}:
		default: // a lookup is already pending
		}
	}
}

// Resubscribed implements feed.Listener. Follow queries the sentinels regularly, so it may miss announcements.
func (a *announcements) Resubscribed(int) {}

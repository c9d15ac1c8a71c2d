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

// period is the interval at which Follow queries the sentinels, and tests each subscription connection with PING:
// without PING, a connection to a vanished server would stay open for hours.
const period = 10 * time.Second

// Follow calls foundFunc with each address that Find returns, until ctx ends. It calls Find immediately, every
// period, and when a sentinel announces a failover. Follow subscribes to all sentinels, because a sentinel that is
// isolated by a partition announces nothing.
func (f *Finder) Follow(ctx context.Context, foundFunc func(addr string)) {
	var hub feed.Hub
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range f.Sentinels {
		wg.Go(hub.Add(ctx, feed.Source{
			Target: &f.Sentinels[i],
			Settings: pipe.Settings{
				Master: i, Timeout: period, Heartbeat: period, ExplainFunc: func(err error) error { return err },
			},
			Redial: wire.Redial{Min: time.Second, Max: time.Second},
		}))
	}
	news := make(chan struct{}, 1)
	hub.Subscribe("+switch-master", &announcements{f.Name, news})
	for ctx.Err() == nil {
		if addr, err := f.Find(ctx); err == nil {
			foundFunc(addr)
		}
		select {
		case <-news:
		case <-time.After(period):
		case <-ctx.Done():
		}
	}
}

// announcements wakes Follow when a sentinel announces a failover of the master.
type announcements struct {
	name string // the name of the master
	news chan<- struct{}
}

// Message implements feed.Listener.
func (a *announcements) Message(_ int, payload string) {
	if strings.HasPrefix(payload, a.name+" ") {
		select {
		case a.news <- struct{}{}:
		default: // a lookup is already pending
		}
	}
}

// Resubscribed implements feed.Listener. It does nothing, because Follow queries the sentinels regularly.
func (a *announcements) Resubscribed(int) {}

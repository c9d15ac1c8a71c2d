package redlock_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
)

// A measuredConn counts the bytes of a connection in both directions.
type measuredConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c measuredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c measuredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// An idle Locker costs a master less than 1 kB in 10 s, in both directions together.
func TestVirtualAnIdleLockerIsCheap(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var bytes atomic.Int64
		l := w.over(w.pool(pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := w.masters.Dial(ctx, network, addr)
			return measuredConn{c, &bytes}, err
		})))
		if k, err := l.Lock(w.Context(), "a"); err != nil || k.Unlock(w.Context()) != nil {
			w.Fatal(err)
		}
		after(20 * time.Second)
		before := bytes.Load()
		after(10 * time.Minute)
		if spent := (bytes.Load() - before) / 5 / 60; spent >= 1000 || spent == 0 {
			w.Errorf("%d bytes for each master in 10 s", spent)
		} else {
			w.Logf("%d bytes for each master in 10 s", spent)
		}
	})
}

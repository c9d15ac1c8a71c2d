package redlock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/redlock"
)

// A network carries the connections of one client until it is cut. Then they are silent, and the servers see their end.
type network struct {
	mu    sync.Mutex
	conns []net.Conn
	ended bool
}

func (n *network) through(dial func(context.Context, string, string) (net.Conn, error)) func(
	context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, kind, addr string) (net.Conn, error) {
		server, err := dial(ctx, kind, addr)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.ended {
			return nil, errors.Join(context.DeadlineExceeded, server.Close())
		}
		n.conns = append(n.conns, server)
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(server, far) }()
		go func() { _, _ = io.Copy(far, server) }()
		return near, nil
	}
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	for _, c := range n.conns {
		_ = c.Close()
	}
}

// H147: the next masters may act alone, and a client that holds a lock on them is cut off. Two of the three lose their
// data. They may have forgotten that they may act alone, and the lock, so the change cannot be given up before their
// quarantine has ended: the old masters would grant the lock again.
func TestAbortAfterNextMastersHaveForgotten(t *testing.T) {
	operate(t, 6, func(o *office) {
		urls := o.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:3], Next: urls[3:]}
		l, first := o.client(0, 1, 2), o.client(3, 4, 5)
		if err := errors.Join(l.Admin().Admit(o.within(time.Minute)), first.Admin().Admit(o.within(time.Minute)),
			first.Close(o.Context()), l.Admin().Reconfigure(o.within(2*time.Minute), both),
			l.RaiseEpoch(o.within(time.Minute))); err != nil {
			o.Fatal(err)
		}
		o.pass(2 * time.Minute)
		o.masters.Master(5).Stop()
		operator := o.dial(urls, o.masters.Dial, redlock.WithConfiguration(both), private.Option[redlock.Option](
			private.Settings{Observer: true}))
		if err := errors.Join(operator.FinishChange(o.within(time.Minute)), operator.Close(o.Context())); err != nil {
			o.Fatal(err)
		}
		cable := &network{}
		ahead := o.dial(urls[3:], cable.through(o.masters.Dial),
			redlock.WithConfiguration(redlock.Configuration{Epoch: 2, Masters: urls[3:]}))
		k, err := ahead.Lock(o.within(time.Minute), "n", redlock.WithTTL(30*time.Second))
		if err != nil {
			o.Fatal(err)
		}
		cable.cut()
		for _, i := range []int{3, 4} {
			o.masters.Master(i).Restart(false)
		}
		o.masters.Master(5).Restart(true)
		o.pass(2 * time.Second)
		o.says(l.AbortChange(o.within(5*time.Second)), redlock.ErrNoQuorum, "quarantine")
		if _, err := l.TryLock(o.within(time.Second), "n"); err == nil && k.Err() == nil {
			o.Error("two clients hold the name")
		}
		o.pass(time.Minute)
		if err := l.AbortChange(o.within(time.Minute)); err != nil || k.Err() == nil {
			o.Errorf("after the quarantine: %v; the lock: %v", err, k.Err())
		}
		o.locks("the client", l)

		for _, i := range []int{3, 4, 5} { // the change is not finished after they have forgotten that it was given up
			o.masters.Master(i).Restart(false)
		}
		late := o.dial(urls, o.masters.Dial, redlock.WithConfiguration(both))
		if err := late.FinishChange(o.within(time.Minute)); err == nil {
			o.Errorf("the change that was given up is finished:\n%s", o.records())
		}
	}, memory.Fresh())
}

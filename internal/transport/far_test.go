package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// far is a connection over a network with the round-trip time rtt. Only the replies are delayed.
type far struct {
	net.Conn
	rtt  time.Duration
	in   chan piece
	rest []byte
	end  error
}

type piece struct {
	at  time.Time
	b   []byte
	err error
}

func farAway(dial func(context.Context, string, string) (net.Conn, error), rtt time.Duration) func(context.Context,
	string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select { // SYN and SYN-ACK
		case <-time.After(rtt):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		f := &far{Conn: c, rtt: rtt, in: make(chan piece, 1<<16)}
		go func() {
			for {
				buf := make([]byte, 64<<10)
				n, err := c.Read(buf)
				f.in <- piece{time.Now().Add(rtt), buf[:n], err}
				if err != nil {
					return
				}
			}
		}()
		return f, nil
	}
}

func (f *far) Read(b []byte) (int, error) {
	for len(f.rest) == 0 {
		if f.end != nil {
			return 0, f.end
		}
		p := <-f.in
		if p.err == nil {
			pass(time.Until(p.at))
		}
		f.rest, f.end = p.b, p.err
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// A Transport connects to a distant master if each reply arrives well within the timeout, also with the default
// options.
func TestFarMasterIsConnected(t *testing.T) {
	for _, c := range []struct {
		name string
		rtt  time.Duration
		opts []Option
	}{
		{"defaults, rtt 240ms", 240 * time.Millisecond, nil},
		{"defaults, rtt 260ms", 260 * time.Millisecond, nil},
		{"defaults, rtt 320ms", 320 * time.Millisecond, nil},
		{"5s to dial, rtt 450ms", 450 * time.Millisecond, []Option{WithDialTimeout(5 * time.Second)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newFake("a1")
				p := open(t, []string{"redis://m1"}, append([]Option{WithDialer(farAway(srv.dial, c.rtt)),
					WithClock(clock.Runtime())}, c.opts...)...)
				pass(30 * time.Second)
				synctest.Wait()
				event := state(p, 0)
				if event.Session == 0 {
					t.Errorf("after 30 s and %d connections the master is not up: %v", srv.dialled(), event.Err)
				} else if event.Session > 1 {
					t.Errorf("the session after 30 s is %d, want the first one", event.Session)
				}
				_ = p.Close()
			})
		})
	}
}

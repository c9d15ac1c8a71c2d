package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H175: an attempt that times out gives the next attempt more time, and delays it. A connection that was in use resets
// both. The error says that the cause may be this host.
func TestTimeoutsGiveMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := true
		target := &Target{DialTimeout: time.Second, Addr: "a", Slots: new(Slots),
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if hangs {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				client, server := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, server) }()
				return client, nil
			}}
		redial := Redial{Min: 20 * time.Millisecond, Max: time.Second}
		attempt := func(within, pause time.Duration) {
			t.Helper()
			began := time.Now()
			_, op, err := redial.Connect(t.Context(), target, func(*Conn) (string, error) { return "", nil })
			if took := time.Since(began); took != within || op != "connect" || !errors.Is(err, fault.ErrTimeout) ||
				!strings.Contains(err.Error(), "or this host is overloaded") {
				t.Errorf("after %v, want %v: the error in %q is %v", took, within, op, err)
			}
			began = time.Now()
			redial.Rest(t.Context(), 0)
			if rested := time.Since(began); rested < pause/2 || rested > pause {
				t.Errorf("the pause is %v, want half of %v to all of it", rested, pause)
			}
		}
		attempt(time.Second, time.Second/4)
		attempt(2*time.Second, time.Second/2)
		attempt(4*time.Second, time.Second)
		attempt(4*time.Second, time.Second)
		hangs = false
		c, _, err := redial.Connect(t.Context(), target, func(*Conn) (string, error) { return "", nil })
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		redial.Rest(t.Context(), time.Minute)
		hangs = true
		attempt(time.Second, time.Second/4)
		if len(target.Slots.used) > 0 {
			t.Errorf("slots are still in use: %v", target.Slots.used)
		}
	})
}

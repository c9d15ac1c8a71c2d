package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H103: the same on real masters, for clients that have been connected for a while and for new ones. The limit of the
// wait is far above half a second, since the machine may be slow.
func TestOneShotCallsOnRealMastersHaveOneWinner(t *testing.T) {
	t.Parallel()
	const clients = 10
	servers, _, _ := masters(t, 5)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	client := func(i int) *redlock.Locker {
		dial := jitteryDial(6*time.Millisecond, uint64(i), func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		})
		p := must[*pool.Pool](t)(pool.Open(urls, pool.WithDialer(dial), pool.WithTimeout(10*time.Second)))
		t.Cleanup(func() { _ = p.Close() })
		return locker(t, p, redlock.WithOwner(fmt.Sprint("host-", i)))
	}
	var connected []*redlock.Locker
	for i := range clients {
		connected = append(connected, client(i))
	}
	for round := range rounds(200, 10) {
		lockers := connected
		if round%10 == 9 {
			lockers = nil
			for i := range clients {
				lockers = append(lockers, client(i))
			}
		}
		shots := atOneInstant(clients, func(i int) (*redlock.Lock, error) {
			return lockers[i].TryLock(bounded(t), "cron", redlock.WithWaitLimit(hang/2))
		})
		winners := 0
		for _, s := range shots {
			var e *redlock.LockError
			if s.err == nil {
				winners++
			} else if !errors.Is(s.err, redlock.ErrHeld) || !errors.As(s.err, &e) || e.Holder == "" {
				t.Errorf("round %d: refused for %v", round, s.err)
			}
		}
		if winners != 1 {
			t.Errorf("round %d: %d of %d callers hold the lock", round, winners, clients)
		}
		for _, s := range shots {
			if s.lock != nil {
				_ = s.lock.Unlock(bounded(t))
			}
		}
	}
}

package transport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// realPool starts n servers and a pool of them. The timeouts are long, so that a busy machine does not fail a test of
// something else.
func realPool(t testing.TB, n int, opts ...Option) ([]*redisproc.Server, *Transport) {
	t.Helper()
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	servers := redistest.Test(t, n, redisproc.Config{})
	urls := make([]string, n)
	for i, s := range servers {
		urls[i] = s.URL()
	}
	p, err := Open(urls, append([]Option{WithTimeout(patience), WithDialTimeout(patience)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return servers, p
}

// do runs one command on a separate connection.
func do(t testing.TB, s *redisproc.Server, args ...any) any {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Do(fmt.Sprint(args[0]), args[1:]...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

func channels(t testing.TB, s *redisproc.Server) int {
	t.Helper()
	list, err := redis.Strings(do(t, s, "PUBSUB", "CHANNELS"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func untilConfirmed(t testing.TB, s *Subscription, n int) {
	t.Helper()
	what := fmt.Sprintf("subscription on %d masters (%v)", n, s.Err(0))
	eventually(t, what, func() bool { return confirmedCount(s) == n })
}

func untilHeard(t testing.TB, e *ear, messages, renewed int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages and %d renewals", messages, renewed), func() bool {
		m, g := e.heard()
		return m == messages && g == renewed
	})
}

// A message of a real server arrives, and after the last Close the server has no subscription left.
func TestRealMessages(t *testing.T) {
	servers, p := realPool(t, 3)
	e := newEar()
	a, b := p.Subscribe("a", e), p.Subscribe("b", e)
	untilConfirmed(t, a, 3)
	untilConfirmed(t, b, 3)
	untilHeard(t, e, 0, 6)
	for _, s := range servers {
		if n := do(t, s, "PUBLISH", "a", "free"); n != int64(1) {
			t.Errorf("%v receivers", n)
		}
		do(t, s, "PUBLISH", "c", "free")
	}
	untilHeard(t, e, 3, 6)
	a.Close()
	for _, s := range servers {
		eventually(t, "one channel is left", func() bool { return channels(t, s) == 1 })
	}
	b.Close()
	for _, s := range servers {
		eventually(t, "no channel is left", func() bool { return channels(t, s) == 0 })
	}
	a = p.Subscribe("a", e)
	untilConfirmed(t, a, 3)
	a.Close()
}

// H06, H56: a user without the right to a channel gets an error, and other channels are not affected. Once the user has
// the right, the subscription becomes active by itself.
func TestRealUserWithoutChannelRights(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	srv := redistest.Test(t, 1, redisproc.Config{})[0]
	do(t, srv, "ACL", "SETUSER", "lock", "on", ">pass", "~*", "resetchannels", "&mine:*", "+@all")
	p, err := Open([]string{"redis://lock:pass@" + srv.Addr()}, WithTimeout(patience), WithDialTimeout(patience),
		WithHeartbeat(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e := newEar()
	var mine, others []*Subscription
	for i := range 600 {
		mine = append(mine, p.Subscribe(fmt.Sprint("mine:", i), e))
		if i%100 == 7 {
			others = append(others, p.Subscribe(fmt.Sprint("other:", i), e))
		}
	}
	for _, s := range mine {
		untilConfirmed(t, s, 1)
	}
	for _, s := range others {
		eventually(t, "NOPERM is reported", func() bool {
			var reply redis.Error
			return errors.As(s.Err(0), &reply) && strings.HasPrefix(string(reply), "NOPERM")
		})
		if confirmedCount(s) != 0 {
			t.Error("subscription is active without the right")
		}
	}
	if _, g := e.heard(); g != len(mine) {
		t.Errorf("%d renewals for %d subscriptions", g, len(mine))
	}
	// Revoking a right ends connections, but granting one does not; CLIENT KILL ends them here.
	do(t, srv, "ACL", "SETUSER", "lock", "allchannels")
	do(t, srv, "CLIENT", "KILL", "TYPE", "pubsub")
	for _, s := range append(mine, others...) {
		untilConfirmed(t, s, 1)
	}
}

// A master described by a *redis.Pool gets one more connection, dialled by that pool, for subscriptions.
func TestRealSubscriptionOfARedisPool(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	srv := redistest.Test(t, 1, redisproc.Config{})[0]
	foreign := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("unix", srv.Unix()) }}
	p, err := New([]Master{FromRedisPool("mine", foreign)}, WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e := newEar()
	s := p.Subscribe("a", e)
	untilConfirmed(t, s, 1)
	do(t, srv, "PUBLISH", "a", "free")
	untilHeard(t, e, 1, 1)
	do(t, srv, "CLIENT", "KILL", "TYPE", "pubsub")
	untilHeard(t, e, 1, 2)
}

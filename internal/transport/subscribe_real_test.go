package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
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
	eventually(t, what, func() bool { return s.ConfirmedCount() == n })
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

// H40: a renewed subscription is reported after CLIENT KILL, and after a server was killed and restarted.
func TestRealGapAfterKill(t *testing.T) {
	servers, p := realPool(t, 2)
	e := newEar()
	s := p.Subscribe("a", e)
	untilHeard(t, e, 0, 2)
	do(t, servers[0], "CLIENT", "KILL", "TYPE", "pubsub")
	untilHeard(t, e, 0, 3)
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	untilConfirmed(t, s, 1)
	if set := s.Confirmed(); set != 1<<0 {
		t.Errorf("active on %b", set)
	}
	if err := servers[1].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	untilHeard(t, e, 0, 4)
	untilConfirmed(t, s, 2)
	for _, srv := range servers {
		do(t, srv, "PUBLISH", "a", "free")
	}
	untilHeard(t, e, 2, 4)
}

// The heartbeat detects a stopped process; the subscription is active again when it resumes.
func TestRealHungMaster(t *testing.T) {
	servers, p := realPool(t, 2, WithTimeout(300*time.Millisecond), WithHeartbeat(50*time.Millisecond))
	e := newEar()
	s := p.Subscribe("a", e)
	untilConfirmed(t, s, 2)
	if err := servers[0].Pause(); err != nil {
		t.Fatal(err)
	}
	untilConfirmed(t, s, 1)
	eventually(t, "the reason is a timeout", func() bool { return errors.Is(s.Err(0), ErrTimeout) })
	do(t, servers[1], "PUBLISH", "a", "free")
	eventually(t, "message of the other master arrived", func() bool { m, _ := e.heard(); return m == 1 })
	if err := servers[0].Resume(); err != nil {
		t.Fatal(err)
	}
	untilConfirmed(t, s, 2)
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
		if s.ConfirmedCount() != 0 {
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

// 1000 channels are active on all masters, each gets its message, after a cut as well, and all are gone at the end.
func TestRealThousandChannels(t *testing.T) {
	const n = 1000
	servers, p := realPool(t, 3)
	first := p.Subscribe("first", newEar())
	untilConfirmed(t, first, len(servers))
	first.Close()
	goroutines := runtime.NumGoroutine()
	ears := make([]*ear, n)
	subs := make([]*Subscription, n)
	for i := range subs {
		ears[i] = newEar()
		subs[i] = p.Subscribe(fmt.Sprint("channel:", i), ears[i])
	}
	for _, s := range subs {
		untilConfirmed(t, s, len(servers))
	}
	if more := runtime.NumGoroutine() - goroutines; more > 20 {
		t.Errorf("1000 channels need %d goroutines more than one", more)
	}
	do(t, servers[0], "CLIENT", "KILL", "TYPE", "pubsub")
	for i := range subs {
		untilHeard(t, ears[i], 0, 4)
	}
	for _, s := range servers {
		publishAll(t, s, n)
	}
	for i := range ears {
		untilHeard(t, ears[i], 3, 4)
	}
	for _, s := range subs {
		s.Close()
	}
	for _, s := range servers {
		eventually(t, "no channel is left", func() bool { return channels(t, s) == 0 })
	}
}

func publishAll(t testing.TB, s *redisproc.Server, n int) {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range n {
		if err := c.Send("PUBLISH", fmt.Sprint("channel:", i), "free"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Do(""); err != nil {
		t.Fatal(err)
	}
}

// Many goroutines subscribe and close. The subscriptions left open are active, and the server has no others.
func TestRealChurn(t *testing.T) {
	servers, p := realPool(t, 2)
	const names = 20
	var wg sync.WaitGroup
	kept := make([]map[int]*Subscription, 8)
	e := newEar()
	for g := range kept {
		kept[g] = map[int]*Subscription{}
		wg.Go(func() {
			for range 3000 {
				name := rand.IntN(names)
				if s := kept[g][name]; s != nil {
					s.Close()
					delete(kept[g], name)
				} else {
					kept[g][name] = p.Subscribe(fmt.Sprint("channel:", name), e)
				}
			}
		})
	}
	wg.Wait()
	left, total := map[int]bool{}, 0
	for _, m := range kept {
		for name, s := range m {
			left[name] = true
			total++
			untilConfirmed(t, s, 2)
		}
	}
	for _, s := range servers {
		eventually(t, "server has exactly the open subscriptions", func() bool { return channels(t, s) == len(left) })
	}
	before, _ := e.heard()
	if before != 0 {
		t.Errorf("%d unexpected messages", before)
	}
	for _, s := range servers {
		publishAll(t, s, names)
	}
	eventually(t, "each listener gets its message", func() bool { m, _ := e.heard(); return m == 2*total })
	for _, m := range kept {
		for _, s := range m {
			s.Close()
		}
	}
	for _, s := range servers {
		eventually(t, "no channel is left", func() bool { return channels(t, s) == 0 })
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

package transport

import (
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/feed"
)

func channels(t testing.TB, s *redistest.Server) int {
	t.Helper()
	list := must.Get(redis.Strings(s.Do("PUBSUB", "CHANNELS"), nil))(t)
	return len(list)
}

func untilConfirmed(t testing.TB, s *feed.Subscription, n int) {
	t.Helper()
	what := fmt.Sprintf("subscription on %d masters", n)
	redistest.Eventually(t, what, func() bool { return confirmedCount(s) == n })
}

func untilHeard(t testing.TB, e *ear, messages, renewed int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d messages and %d renewals", messages, renewed), func() bool {
		number, g := e.heard()
		return number == messages && g == renewed
	})
}

// A message of a real server arrives, also on the connection that a *redis.Pool dials for subscriptions. After the last
// Close the server has no subscriptions left.
func TestRealMessages(t *testing.T) {
	servers := []*redistest.Server{startServer(t), startServer(t)}
	foreign := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("unix", servers[1].Unix()) }}
	p := must.Get(New([]Master{URL(servers[0].URL()), FromRedisPool("mine", foreign)}, WithTimeout(patience)))(t)
	defer p.Close()
	e := newEar()
	a, b := p.Subscribe("a", e), p.Subscribe("b", e)
	untilConfirmed(t, a, 2)
	untilConfirmed(t, b, 2)
	untilHeard(t, e, 0, 4)
	for _, s := range servers {
		if n := s.Do("PUBLISH", "a", "free"); n != int64(1) {
			t.Errorf("the message was received by %v connections, want 1", n)
		}
		s.Do("PUBLISH", "c", "free")
	}
	untilHeard(t, e, 2, 4)
	servers[1].Do("CLIENT", "KILL", "TYPE", "pubsub")
	untilHeard(t, e, 2, 6)
	for i, sub := range []*feed.Subscription{a, b} {
		sub.Close()
		for _, s := range servers {
			redistest.Eventually(t, fmt.Sprintf("channel %d is closed", i), func() bool { return channels(t, s) == 1-i })
		}
	}
}

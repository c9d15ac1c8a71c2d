package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H65, H86: with 100 000 dead waiters in the queue, a release takes less than 5 ms of the server's time. 200 releases
// remove all waiters whose time has passed, and at least 1600 waiters without a subscriber.
func TestReleaseBehindManyDeadWaitersIsShort(t *testing.T) {
	const most = 5000 // us
	dead := int64(100_000)
	if !long.Enabled() {
		dead = 10_000
	}
	for _, what := range []string{"long dead", "deaf", "of the queue alone"} {
		t.Run(what, func(t *testing.T) {
			c := onServer(t, "--save", "")
			now := c.now()
			counts := now - second
			if what == "deaf" {
				counts = now + 60*second
			}
			for i := range dead {
				id := scripts.NewTicket(scripts.Plain, fmt.Sprint("gone", i), 1, "", now-i, 0).Waiter()
				must.Do(t, c.Send("ZADD", prefix.Queue("a"), 0, id))
				if what != "of the queue alone" {
					must.Do(t, c.Send("ZADD", prefix.Waiters("a"), counts, id))
				}
			}
			c.must("")
			c.must("HSET", prefix.Lock("a"), scripts.FieldFence, now, scripts.FieldQueue, 1)
			var took []float64
			for i := range uint64(200) {
				c.must("HSET", prefix.Lock("a"), grant(me, i), scripts.LeaseText(1, now, now, now))
				c.must("CONFIG", "RESETSTAT")
				if !c.release("a", ending(grant(me, i))) {
					t.Fatal("the lease was not found")
				}
				took = append(took, c.spent("evalsha"))
			}
			// The server's time also passes while the machine runs something else, so the test considers only the faster half
			// of the releases. If the work grew with the number of dead waiters, all releases would take longer.
			slices.Sort(took)
			t.Logf("the faster half of the releases took up to %v us, and the slowest took %v", took[100], took[190:])
			if took[100] > most {
				t.Errorf("half of the releases took %v us or more, want at most %d us", took[100], most)
			}
			if n := c.must("ZCARD", prefix.Queue("a")); what == "long dead" && n != int64(0) {
				t.Errorf("%v waiters are left after 200 releases, want none", n)
			}
			if n := c.must("ZCARD", prefix.Queue("a")).(int64); n > dead-1600 {
				t.Errorf("%v waiters are left after 200 releases, want at most %d", n, dead-1600)
			}
		})
	}
}

// spent returns the server's time for a command, in us, since the statistics were reset.
func (c *client) spent(command string) (micros float64) {
	c.t.Helper()
	text := must.Get(redis.String(c.must("INFO", "commandstats"), nil))(c.t)
	for line := range strings.SplitSeq(text, "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":"); ok {
			calls := 0
			must.Get(fmt.Sscanf(rest, "calls=%d,usec=%f,", &calls, &micros))(c.t)
		}
	}
	return micros
}

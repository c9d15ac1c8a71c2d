package scripts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestADeadNeighbourIsDropped: whoever asks again drops those beside it that count no more, and of those that join one in
// eight does, by its ballot.
func TestADeadNeighbourIsDropped(t *testing.T) {
	c := onServer(t) // the in-memory master does the same; see TestServerAndPureMachineAgree
	for _, last := range []int64{0, 1, 2, 4, 7} {
		name, now := fmt.Sprint("a", last), c.now()
		c.want(scripts.Granted, acquire(hold(name, "holder:1"), now))
		ask := func(locker string, priority int, ballot int64) int64 {
			ticket := scripts.NewTicket(locker, 1, now, priority)
			return int64(c.want(scripts.Held, fleet.QueueCall(hold(name, locker+":7"), ticket, false, ttl, time.Minute, ballot, ballot)).Place)
		}
		ballot := now - now%8 - 8
		for i, locker := range []string{"one", "before", "behind", "last"} {
			if place := ask(locker, -i, ballot+1); place != int64(i) {
				t.Fatalf("%s joins at %d", locker, place)
			}
		}
		for _, dead := range []string{"before", "behind"} {
			c.must("HSET", prefix.Alive(name), scripts.NewTicket(dead, 1, now, 0).String(), "1")
		}
		count := func() int64 { return ask("counts all", -99, ballot+1) }
		drops := last == 0
		place, behind := ask("me", -1, ballot+last), count()
		if drops != (place == 1) || drops != (behind == 3) {
			t.Errorf("with a ballot that ends with %d, who joins gets place %d, of %d", last, place, behind)
		}
		if place, behind := ask("me", -1, ballot+1), count(); place != 1 || behind != 3 {
			t.Errorf("asking again it gets place %d, of %d", place, behind)
		}
	}
}

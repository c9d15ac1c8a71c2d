package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/cluster"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

func TestEachBucketHasItsPool(t *testing.T) {
	pools, err := OpenBuckets([]string{"rediss+cluster://u:secret@n1:7000,N2/?buckets=3", "redis://plain"})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pools {
		tag := fmt.Sprintf("{%d}", i+1)
		if bucket := p.Bucket(); bucket != (Bucket{i + 1, 3}) || bucket.Tag() != tag ||
			p.Addr(0) != "cluster@n1:7000,n2:6379"+tag || p.Addr(1) != "plain:6379" || !p.FailsOver(0) || p.FailsOver(1) ||
			p.master(0).cfg.TLS == nil {
			t.Errorf("bucket %+v has the masters %q and %q, or wrong options", bucket, p.Addr(0), p.Addr(1))
		}
		_ = p.Close()
	}
	if len(pools) != 3 || (Bucket{}).Tag() != "" {
		t.Errorf("OpenBuckets returned %d transports", len(pools))
	}
	_, err = OpenBuckets([]string{"redis+cluster://n1?buckets=2", "redis+cluster://n2?buckets=3"})
	if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "counts must be equal") {
		t.Error(err)
	}
}

// H143: a node whose slot is moving or has moved answers a call with an error. The connection then ends, and the next
// connection increases the number of moves. Each prefix needs one quarantine for each move.
func TestMovingSlotEndsConnection(t *testing.T) {
	for _, reply := range []string{"-MOVED 1 a:1\r\n", "-ASK 1 a:1\r\n", "-TRYAGAIN Multiple keys\r\n"} {
		f := newFake("a")
		f.extra = "cluster_enabled:1\r\n"
		f.on = func(w io.Writer, cmd []string) (bool, error) {
			if cmd[0] != "CLUSTER" {
				return false, nil
			}
			_, err := io.WriteString(w, bulk("aa h:6379@1 myself,master - 0 1 1 connected 0-16383\n"))
			return true, err
		}
		inBucket := set(func(cfg *Config) { cfg.failover = &failover{true, &cluster.Slot{Tag: "{1}"}} })
		p := open(t, []string{"redis://h"}, WithDialer(f.dial), inBucket)
		waitUp(t, p)
		if n := state(p, 0).Info.Moves; n != 0 || !p.Quarantined(0, n, "p") {
			t.Errorf("the number of moves is %d on the first connection, or a quarantine is missing", n)
		}
		session := state(p, 0).Session
		reconnected := func() bool {
			s := state(p, 0)
			return s.Err == nil && s.Session != session
		}
		f.set(func() { f.answer = func([]string) string { return reply } })
		if _, err := call(t, p, 0, inspect("x"), Condition{}); err == nil || !Answered(err) {
			t.Errorf("%q: the call returned %v", reply, err)
		}
		redistest.Eventually(t, "second connection", reconnected)
		moves := state(p, 0).Info.Moves
		if moves == 0 {
			t.Errorf("%q: the number of moves is 0 on the next connection", reply)
		}
		f.set(func() { f.answer = func([]string) string { return ":1\r\n" } })
		for _, begun := range []bool{false, true} {
			session = state(p, 0).Session
			if begun {
				p.RecordQuarantine(0, moves, "p")
			}
			f.cut()
			redistest.Eventually(t, "another connection", reconnected)
			if n := state(p, 0).Info.Moves; n != moves || p.Quarantined(0, n, "p") != begun ||
				p.Quarantined(0, n+1, "p") || p.Quarantined(0, n, "other") {
				t.Errorf("%q: the number of moves is %d, want %d; quarantine begun: %v", reply, n, moves, begun)
			}
		}
		_ = p.Close()
	}
}

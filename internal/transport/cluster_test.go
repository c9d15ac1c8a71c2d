package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

func TestEachBucketHasItsPool(t *testing.T) {
	pools, err := OpenBuckets([]string{"rediss+cluster://u:secret@n1:7000,N2/?buckets=3", "redis://plain"})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pools {
		tag := fmt.Sprintf("{%d}", i+1)
		if b := p.Bucket(); b != (Bucket{i + 1, 3}) || b.Tag() != tag || p.Addr(0) != "cluster@n1:7000,n2:6379"+tag ||
			p.Addr(1) != "plain:6379" || !p.FailsOver(0) || p.FailsOver(1) || p.master(0).cfg.TLS == nil {
			t.Errorf("bucket %+v has the masters %q and %q, or wrong options", b, p.Addr(0), p.Addr(1))
		}
		_ = p.Close()
	}
	if len(pools) != 3 || (Bucket{}).Tag() != "" {
		t.Errorf("OpenBuckets returned %d transports", len(pools))
	}
	for _, c := range []struct {
		urls []string
		says string
	}{
		{[]string{"redis+cluster://n1"}, "number of buckets"},
		{[]string{"redis+cluster://n1?buckets=0"}, "number of buckets"},
		{[]string{"redis+cluster://n1?buckets=301"}, "from 1 to 300"},
		{[]string{"redis+cluster://n1/3?buckets=2"}, "number of buckets"},
		{[]string{"redis+cluster://n1?buckets=2&db=1"}, `"db"`},
		{[]string{"redis+cluster://?buckets=2"}, "one of its hosts"},
		{[]string{"redis+cluster://u:secret@n1?buckets=2&allow=all"}, "allow must be two-holders"},
		{[]string{"redis+cluster://n1?buckets=2", "redis+cluster://n2?buckets=3"}, "counts must be equal"},
		{[]string{"redis://n1"}, "no master is a cluster"},
		{[]string{"redis+clusters://n1"}, "redis+cluster"},
	} {
		if _, err := OpenBuckets(c.urls); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("OpenBuckets of %q returned %v", c.urls, err)
		}
	}
	if _, err := Open([]string{"redis+cluster://n1?buckets=2"}); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "OpenBuckets") {
		t.Error(err)
	}
}

// slotOf returns the same slots as CLUSTER KEYSLOT.
func TestSlotsOfTags(t *testing.T) {
	for tag, slot := range map[string]int{"{foo}": 12182, "{1}": 9842, "{123456789}": 12739} {
		if got := slotOf(tag); got != slot {
			t.Errorf("the slot of %s is %d, want %d", tag, got, slot)
		}
	}
	var shards [3]int
	for i := range 64 {
		shards[slotOf(Bucket{i + 1, 64}.Tag())*3/16384]++
	}
	if slices.Min(shards[:]) < 14 {
		t.Errorf("the bucket counts of the three shards are %v, want at least 14 each", shards)
	}
}

func TestMovedTo(t *testing.T) {
	for reply, want := range map[redis.Error]string{
		"MOVED 9842 10.0.0.2:7001": "10.0.0.2:7001", "MOVED 1 :7001": "n1:7001", "MOVED 1 ?:7001": "n1:7001",
		"MOVED 1 [::1]:7001": "[::1]:7001", "MOVED 1": "", "ASK 1 10.0.0.2:7001": "", "CLUSTERDOWN": "", "": "",
	} {
		if got := movedTo(reply, "n1:7000"); got != want {
			t.Errorf("%q redirects to %q, want %q", reply, got, want)
		}
	}
}

// readNodes returns the number of replicas, connected or not, and reports whether the slot is being moved.
func TestReadNodes(t *testing.T) {
	nodes := func(slots string) string {
		return "aa n1:7000@1 myself,master - 0 1 1 connected 0-9999 " + slots + "\n" +
			"bb n2:7000@1 slave aa 0 1 1 disconnected\n" +
			"cc n3:7000@1 slave,fail aa 1 1 1 disconnected\n" +
			"dd n4:7000@1 slave ee 0 1 1 connected\n" +
			"ee n5:7000@1 master - 0 1 1 connected 10000-16383\n"
	}
	for slots, moving := range map[string]bool{"": false, "[9842->-ee]": true, "[9842-<-ee]": true, "[98->-ee]": false} {
		replicas, got, err := readNodes(nodes(slots), 9842)
		if replicas != 2 || got != moving || err != nil {
			t.Errorf("%q: readNodes returned %d replicas, moving %v, error %v", slots, replicas, got, err)
		}
	}
	for _, text := range []string{"", "aa n1:7000@1 master\n", strings.ReplaceAll(nodes(""), "myself,", "")} {
		if _, _, err := readNodes(text, 1); err == nil {
			t.Errorf("readNodes accepted %q", text)
		}
	}
	for err, want := range map[error]bool{
		errMoving: true, fault.Down(redis.Error("MOVED 1 a:1")): true, redis.Error("ASK 1 a:1"): true,
		redis.Error("TRYAGAIN Multiple keys request"): true, redis.Error("CLUSTERDOWN"): false, ErrTimeout: false,
	} {
		if leaving(err) != want {
			t.Errorf("leaving(%v) is %v", err, !want)
		}
	}
}

// H143: a node whose slot is moving or has moved answers a call with an error. The connection then ends, and the next
// connection increases the number of moves. Each prefix needs one quarantine for each move.
func TestMovingSlotEndsConnection(t *testing.T) {
	for _, reply := range []string{"-MOVED 1 a:1\r\n", "-ASK 1 a:1\r\n", "-TRYAGAIN Multiple keys\r\n"} {
		f := newFake("a")
		p := open(t, []string{"redis://h"}, WithDialer(f.dial))
		waitUp(t, p)
		if n := state(p, 0).Info.Moves; n != 0 || !p.Settled(0, n, "p") {
			t.Errorf("the number of moves is %d on the first connection, or a quarantine is missing", n)
		}
		session := state(p, 0).Session
		reconnected := func() bool {
			s := state(p, 0)
			return s.Err == nil && s.Session != session
		}
		f.set(func() { f.answer = func([]string) string { return reply } })
		if _, err := call(t, p, 0, inspect("x"), Stamp{}); err == nil || !Answered(err) {
			t.Errorf("%q: the call returned %v", reply, err)
		}
		eventually(t, "second connection", reconnected)
		moves := state(p, 0).Info.Moves
		if moves == 0 {
			t.Errorf("%q: the number of moves is 0 on the next connection", reply)
		}
		f.set(func() { f.answer = func([]string) string { return ":1\r\n" } })
		for _, settled := range []bool{false, true} {
			session = state(p, 0).Session
			if settled {
				p.Settle(0, moves, "p")
			}
			f.cut()
			eventually(t, "another connection", reconnected)
			if n := state(p, 0).Info.Moves; n != moves || p.Settled(0, n, "p") != settled || p.Settled(0, n+1, "p") ||
				p.Settled(0, n, "other") {
				t.Errorf("%q: the number of moves is %d, want %d; quarantine begun: %v", reply, n, moves, settled)
			}
		}
		_ = p.Close()
	}
}

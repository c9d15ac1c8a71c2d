package scripts_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// H20: an extension never creates a lock, and reports how long another holds the name.
func TestExtendNeverCreates(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	v := c.want(scripts.Missing, enc.Extend(keys("a"), id, ttl, 1, ""))
	if v.Fence != 0 || v.Time < now || v.Left != -1 {
		t.Errorf("free name: %+v", v)
	}
	if c.must("EXISTS", prefix.Lock("a"), prefix.Fence("a")) != int64(0) {
		t.Error("the extension created a key")
	}
	c.want(scripts.Granted, acquire("a", grant(other, 1), now))
	if v = c.want(scripts.Missing, enc.Extend(keys("a"), id, time.Minute, 2, "")); v.Fence != now || !near(v.Left, ttl) {
		t.Errorf("name held by another: %+v", v)
	}
	c.must("PERSIST", prefix.Lock("a"))
	if v = c.want(scripts.Missing, enc.Extend(keys("a"), id, ttl, 1, "")); v.Left != math.MaxInt64 {
		t.Errorf("name held by another without expiry: %+v", v)
	}
}

// H28: an extension never shortens a TTL, and sets the depth that was sent.
func TestExtendNeverShortens(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.want(scripts.Granted, acquire("a", id, c.now()))
	for _, step := range []struct {
		ttl   time.Duration
		depth scripts.Depth
		left  time.Duration
	}{
		{time.Minute, 2, time.Minute}, {time.Second, 3, time.Minute}, {0, 1, time.Minute},
		{2 * time.Minute, 1, 2 * time.Minute}, {time.Millisecond, 7, 2 * time.Minute},
	} {
		c.want(scripts.Granted, enc.Extend(keys("a"), id, step.ttl, step.depth, ""))
		if got := c.inspect("a"); got.ID != id || got.Depth != int(step.depth) || !near(got.Left, step.left) {
			t.Errorf("after %v and depth %d: %+v", step.ttl, step.depth, got)
		}
	}
}

// A client may have removed the TTL of the key (PERSIST). The release of an inner lock must not delete it.
func TestTheReleaseOfAnInnerLockKeepsALockWithoutTime(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.must("HSET", prefix.Lock("a"), id, "2 1 1")
	c.want(scripts.Granted, enc.Extend(keys("a"), id, 0, 1, ""))
	if got := c.inspect("a"); got.ID != id || got.Depth != 1 || got.Left >= 0 {
		t.Errorf("outer lock: %+v", got)
	}
	if v := c.want(scripts.Held, acquire("a", grant(other, 1), c.now())); v.Left != -1 || v.Token != 1 {
		t.Errorf("acquire by another: %+v", v)
	}
}

func TestInspectWritesNothing(t *testing.T) {
	c := onServer(t)
	before := c.now()
	got := c.inspect("a")
	if want := (scripts.Holding{Left: -1, Time: got.Time}); got.Time < before || !reflect.DeepEqual(got, want) {
		t.Errorf("free name: %+v", got)
	}
	if c.must("DBSIZE") != int64(0) {
		t.Error("Inspect wrote a key")
	}
	c.must("SET", prefix.Admission(), "v3 whatever")
	now, id := c.now(), grant(me, 1)
	c.want(scripts.Granted, enc.Acquire(keys("a"), id, ttl, now, now+3, nil))
	c.want(scripts.Granted, enc.Extend(keys("a"), id, ttl, 3, ""))
	got = c.inspect("a")
	want := scripts.Holding{ID: id, Depth: 3, Token: now, Left: got.Left, Fence: now + 3, Time: got.Time,
		Record: "v3 whatever"}
	if !near(got.Left, ttl) || got.Time < now || !reflect.DeepEqual(got, want) {
		t.Errorf("held name: %+v, want %+v", got, want)
	}
}

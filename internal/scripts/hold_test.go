package scripts_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestExtendNeverCreates (H20), and says for how long another has the name.
func TestExtendNeverCreates(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	v := c.want(scripts.Missing, enc.Extend(keys("a"), id, ttl, 1))
	if v.Fence != 0 || v.Time < now || v.Left != -1 {
		t.Errorf("on a free name: %+v", v)
	}
	if c.must("EXISTS", prefix.Lock("a"), prefix.Fence("a")) != int64(0) {
		t.Error("the extension has made a key")
	}
	c.want(scripts.Granted, acquire("a", grant(other, 1), now))
	if v = c.want(scripts.Missing, enc.Extend(keys("a"), id, time.Minute, 2)); v.Fence != now || !near(v.Left, ttl) {
		t.Errorf("on another's name: %+v", v)
	}
	c.must("PERSIST", prefix.Lock("a"))
	if v = c.want(scripts.Missing, enc.Extend(keys("a"), id, ttl, 1)); v.Left != math.MaxInt64 {
		t.Errorf("on a name that another has for ever: %+v", v)
	}
}

// TestExtendNeverShortens (H28): and the depth is the number that was sent.
func TestExtendNeverShortens(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.want(scripts.Granted, acquire("a", id, c.now()))
	for _, step := range []struct {
		ttl   time.Duration
		depth int
		left  time.Duration
	}{
		{time.Minute, 2, time.Minute}, {time.Second, 3, time.Minute}, {0, 1, time.Minute},
		{2 * time.Minute, 1, 2 * time.Minute}, {time.Millisecond, 7, 2 * time.Minute},
	} {
		c.want(scripts.Granted, enc.Extend(keys("a"), id, step.ttl, step.depth))
		if got := c.inspect("a"); got.ID != id || got.Depth != step.depth || !near(got.Left, step.left) {
			t.Errorf("after %v and depth %d: %+v", step.ttl, step.depth, got)
		}
	}
}

// Somebody may have taken the time off the key (PERSIST). A release of an inner lock must not delete it.
func TestTheReleaseOfAnInnerLockKeepsALockWithoutTime(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.must("HSET", prefix.Lock("a"), id, "2 1 1")
	c.want(scripts.Granted, enc.Extend(keys("a"), id, 0, 1))
	if got := c.inspect("a"); got.ID != id || got.Depth != 1 || got.Left >= 0 {
		t.Errorf("the outer lock is %+v", got)
	}
	if v := c.want(scripts.Held, acquire("a", grant(other, 1), c.now())); v.Left != -1 || v.Token != 1 {
		t.Errorf("asked for, it is %+v", v)
	}
}

func TestInspectWritesNothing(t *testing.T) {
	c := onServer(t)
	before := c.now()
	got := c.inspect("a")
	if want := (scripts.Holding{Left: -1, Time: got.Time}); got.Time < before || !reflect.DeepEqual(got, want) {
		t.Errorf("a free name: %+v", got)
	}
	if c.must("DBSIZE") != int64(0) {
		t.Error("the inspection has written")
	}
	c.must("SET", prefix.Admission(), "v3 whatever")
	now, id := c.now(), grant(me, 1)
	c.want(scripts.Granted, enc.Acquire(keys("a"), id, ttl, now, now+3, nil))
	c.want(scripts.Granted, enc.Extend(keys("a"), id, ttl, 3))
	got = c.inspect("a")
	want := scripts.Holding{ID: id, Depth: 3, Token: now, Left: got.Left, Fence: now + 3, Time: got.Time,
		Record: "v3 whatever"}
	if !near(got.Left, ttl) || got.Time < now || !reflect.DeepEqual(got, want) {
		t.Errorf("a held name: %+v, want %+v", got, want)
	}
}

package scripts_test

import (
	"reflect"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

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

package scripts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H186: on a real server, the user of a client lacks one right, and the client ends after its acquire, whatever the
// reply. Whichever right it is, another client gets the name when the TTL has passed by both clocks. Without hdel, a
// second lease may stay beside an expired one, and no script can read the hash until its old life ends.
func TestNameIsFreeAfterClientWithoutRight(t *testing.T) {
	c := onServer(t)
	all := strings.Fields(prefix.Rule())
	plain, slot := prefix.Keys("a"), prefix.Keys(scripts.Slot{Number: 1, Of: 2}.Name("b"))
	reader, writer := prefix.KeysOf("c", scripts.Reader), prefix.KeysOf("d", scripts.Writer)
	for _, lacks := range scripts.Rights {
		rules := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return word == "+"+lacks.Rule })
		c.must("ACL", redis.Args{"SETUSER", "lacking", "reset", "on", ">pw"}.AddFlat(rules)...)
		user := c.second()
		user.must("AUTH", "lacking", "pw")
		for _, before := range []bool{false, true} { // whether there is an expired lease
			c.must("FLUSHDB")
			for _, k := range []*scripts.Keys{&plain, &slot, &reader, &writer} {
				now := c.now()
				if before {
					c.want(quorum.Granted, acquireForSecond(k, other, 1, now))
					c.pass(k)
				}
				_, err := user.run(acquireForSecond(k, me, 2, now+2*second), "")
				c.pass(k)
				if before && lacks.Rule == "hdel" && k.Role() == scripts.Plain && c.left(k.Lock()) < 75_000 {
					c.must("DEL", k.Lock())
				}
				reply, failed := c.run(acquireForSecond(k, other, 3, now+4*second), "")
				if failed != nil || reply != int64(1) {
					t.Errorf("without %s, with an expired lease %v, the error %v: then %s is %v, %v", lacks.Rule, before, err,
						k.Lock(), reply, failed)
				}
			}
		}
	}
}

// acquireForSecond returns an acquire with a TTL of a second.
func acquireForSecond(k *scripts.Keys, owner string, number uint64, at int64) *frame.Call {
	return enc.Acquire(k, scripts.ShareID(owner, number, k.Role(), at, ""), term(time.Second, at), at, at, 1, nil)
}

// pass makes the leases of a name as old as if ten seconds had passed on the server.
func (c *client) pass(k *scripts.Keys) {
	c.t.Helper()
	if left := c.left(k.Lock()); left > 0 {
		c.must("PEXPIRE", k.Lock(), max(1, left-10_000))
	}
	shares := k.Lock() + ":shares"
	for _, id := range must.Get(redis.Strings(c.must("ZRANGE", shares, 0, -1), nil))(c.t) {
		c.must("ZINCRBY", shares, -10*second, id)
	}
}

// H186: the key of a lock has no TTL, because another program has removed it (PERSIST). The deadline alone decides, and
// the release of an inner lock does not delete the key.
func TestLeaseWithoutTTL(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	c.want(quorum.Granted, acquire("a", id, now))
	c.must("PERSIST", prefix.Lock("a"))
	c.want(quorum.Granted, enc.Extend(keys("a"), id, scripts.Term{}, 1, ""))
	until := now + ttl.Microseconds()
	if v := c.want(quorum.Held, acquire("a", grant(other, 1), until)); v.Left <= 0 || v.Left > time.Second {
		t.Errorf("at its deadline the lock is %+v", v)
	}
	for at, want := range map[int64]string{0: id, until: id, until + 1: ""} {
		if h := c.inspectAt("a", at); h.ID != want || want != "" && (h.Left <= 0 || h.Left > ttl) {
			t.Errorf("at %d the lock is %+v", at, h)
		}
	}
	c.want(quorum.Granted, acquire("a", grant(other, 2), until+1))
	if left := c.left(prefix.Lock("a")); left <= 0 {
		t.Errorf("the key of the next lock has the TTL %d", left)
	}
}

package scripts_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	prefix = scripts.Prefix("redlock")
	ttl    = 10 * time.Second
	second = int64(time.Second / time.Microsecond)
)

// The ids of two owners.
const (
	me    = "0d8c8be0-7f9a-4a3b-9a51-3f6f2f3c8a11"
	other = "5b1e54f2-03c1-4e0c-8d5e-2f1f0a7f9c42"
)

var enc = scripts.NewEncoder(prefix, 3)

// grant returns the id of a lease, and keys returns the keys of a name.
func grant(owner string, number uint64) string {
	return scripts.LeaseID(owner, number, "label")
}

func keys(name string) *scripts.Keys {
	k := prefix.Keys(name)
	return &k
}

// A client is one connection to a master.
type client struct {
	redis.Conn

	t    testing.TB
	dial func() redis.Conn
}

// onServer starts a real server for the test, and connects to it.
func onServer(t testing.TB, args ...string) *client {
	t.Helper()
	return clientOf(t, redistest.Test(t, 1, redisproc.Config{Args: args})[0])
}

func clientOf(t testing.TB, s *redisproc.Server) *client {
	t.Helper()
	return newClient(t, func() redis.Conn {
		return must.Get(redis.Dial("unix", s.Unix()))(t)
	})
}

func newClient(t testing.TB, dial func() redis.Conn) *client {
	c := &client{Conn: dial(), t: t, dial: dial}
	t.Cleanup(func() { _ = c.Close() })
	for _, s := range scripts.All {
		c.must("SCRIPT", "LOAD", s.Text)
	}
	return c
}

// second opens another connection to the same master.
func (c *client) second() *client { return newClient(c.t, c.dial) }

func (c *client) must(command string, args ...any) any {
	c.t.Helper()
	reply, err := c.Do(command, args...)
	if err != nil {
		c.t.Fatalf("the command %s %.200v failed: %v", command, args, err)
	}
	return reply
}

// text returns the value of a string key, or "" if the key does not exist.
func (c *client) text(key string) string {
	c.t.Helper()
	s, err := redis.String(c.must("GET", key), nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		c.t.Fatal(err)
	}
	return s
}

// fence returns the fence of a name, or "" if the name has none.
func (c *client) fence(name string) string {
	c.t.Helper()
	s, err := redis.String(c.Do("HGET", prefix.Lock(name), scripts.FieldFence))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		c.t.Fatal(err)
	}
	return s
}

func (c *client) now() int64 {
	c.t.Helper()
	pair := must.Get(redis.Int64s(c.must("TIME"), nil))(c.t)
	return pair[0]*second + pair[1]
}

// run sends a call with a stamp, which otherwise the transport adds. If the stamp is "", the restart guard is disabled.
func (c *client) run(call *frame.Call, stamp string) (any, error) {
	command, args := call.Args(stamp, false)
	return c.Do(command, args...)
}

func (c *client) stamped(call *frame.Call, stamp string) scripts.Vote {
	c.t.Helper()
	reply, err := c.run(call, stamp)
	if err != nil {
		c.t.Fatalf("%s failed: %v", call.Script.Name, err)
	}
	v, err := scripts.DecodeVote(reply)
	if err != nil {
		c.t.Fatalf("the reply to %s is invalid: %v", call.Script.Name, err)
	}
	return v
}

// want runs a call without the restart guard, and ends the test unless the reply is of this kind.
func (c *client) want(kind quorum.Outcome, call *frame.Call) scripts.Vote {
	c.t.Helper()
	v := c.stamped(call, "")
	if v.Outcome != kind {
		c.t.Fatalf("%s returned %+v, want %v", call.Script.Name, v, kind)
	}
	return v
}

// release runs a release, and reports whether one of its leases existed.
func (c *client) release(name string, end scripts.Ending) bool {
	c.t.Helper()
	reply := must.Get(c.run(enc.Release(keys(name), end), ""))(c.t)
	if reply != int64(0) && reply != int64(1) {
		c.t.Fatalf("the reply to a release is %v", reply)
	}
	return reply == int64(1)
}

func (c *client) inspect(name string) scripts.Holding {
	c.t.Helper()
	return c.inspectAt(name, 0)
}

// inspectAt inspects a name for a client whose estimate of the masters' time is this.
func (c *client) inspectAt(name string, time int64) scripts.Holding {
	c.t.Helper()
	reply := must.Get(c.run(enc.Inspect(keys(name), time), ""))(c.t)
	return must.Get(scripts.DecodeHolding(reply))(c.t)
}

// wantError runs a call that must fail with an error of this code.
func (c *client) wantError(code string, call *frame.Call, stamp string) {
	c.t.Helper()
	reply, err := c.run(call, stamp)
	var text redis.Error
	if !errors.As(err, &text) || fault.Code(text) != code {
		c.t.Errorf("%s returned %v, %v; want an error %s", call.Script.Name, reply, err, code)
	}
}

// everything returns all keys of a name with their values. It reports TTLs only as present or absent.
func (c *client) everything(name string) string {
	c.t.Helper()
	var b strings.Builder
	for _, key := range []string{prefix.Lock(name), prefix.Shares(name), prefix.Queue(name), prefix.Waiters(name)} {
		for _, cmd := range [][]any{{"GET", key}, {"HGETALL", key}, {"ZRANGE", key, 0, -1, "WITHSCORES"}} {
			if reply, err := c.Do(cmd[0].(string), cmd[1:]...); err == nil && reply != nil {
				fmt.Fprintf(&b, "%s %q\n", key, reply)
			}
		}
		fmt.Fprintln(&b, c.left(key) >= 0)
	}
	return b.String()
}

func (c *client) left(key string) int64 {
	c.t.Helper()
	return must.Get(redis.Int64(c.must("PTTL", key), nil))(c.t)
}

func (c *client) fields(name string) map[string]string {
	c.t.Helper()
	return must.Get(redis.StringMap(c.must("HGETALL", prefix.Lock(name)), nil))(c.t)
}

// term returns a term of this length that begins at a ballot.
func term(d time.Duration, ballot int64) scripts.Term {
	return scripts.Term{TTL: d, Until: ballot + d.Microseconds()}
}

// acquire returns an acquire with a single ballot and without a ticket.
func acquire(name, id string, ballot int64) *frame.Call {
	return enc.Acquire(keys(name), id, term(ttl, ballot), ballot, ballot, 1, nil)
}

func ending(ids ...string) scripts.Ending { return scripts.Ending{Leases: ids} }

// near reports whether a remaining time is plausible: at most want, and at most 5 s less.
func near(got, want time.Duration) bool { return got <= want && got >= want-5*time.Second }

// admittedRecord admits the server, and returns the stamp of its record.
func (c *client) admittedRecord() string {
	c.t.Helper()
	c.admit(c.request(scripts.AdmitStart))
	return scripts.StampOf(c.admit(c.request(scripts.AdmitNow)).Record)
}

package scripts_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	prefix = scripts.Prefix("redlock")
	window = 15 * time.Second
	barTTL = time.Hour
	ttl    = 10 * time.Second
	guard  = 30 * time.Second
)

var fleet = scripts.NewFleet(prefix, window, barTTL, 0)

// A client is one connection to one master with the scripts loaded.
type client struct {
	redis.Conn

	t    *testing.T
	dial func() redis.Conn
}

// onBoth runs a test against a real server and against an in-memory master: they must behave alike.
func onBoth(t *testing.T, f func(t *testing.T, c *client)) {
	t.Run("server", func(t *testing.T) { f(t, onServer(t)) })
	t.Run("memory", func(t *testing.T) {
		m := redlocktest.New(1, redlocktest.Fresh())
		t.Cleanup(m.Close)
		f(t, newClient(t, func() redis.Conn {
			nc, err := m.Dial(t.Context(), "tcp", m.Master(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			return redis.NewConn(nc, 0, 0)
		}))
	})
}

// onServer starts a real server for the test.
func onServer(t *testing.T, args ...string) *client {
	t.Helper()
	s := redistest.Test(t, 1, redisproc.Config{Args: args})[0]
	return newClient(t, func() redis.Conn {
		c, err := redis.Dial("unix", s.Unix())
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func newClient(t *testing.T, dial func() redis.Conn) *client {
	c := &client{Conn: dial(), t: t, dial: dial}
	t.Cleanup(func() { _ = c.Close() })
	for _, s := range scripts.All {
		c.must("SCRIPT", "LOAD", s.Text)
	}
	return c
}

// second is another connection to the same master.
func (c *client) second() *client { return newClient(c.t, c.dial) }

func (c *client) must(command string, args ...any) any {
	c.t.Helper()
	reply, err := c.Do(command, args...)
	if err != nil {
		c.t.Fatalf("%s %.200v: %v", command, args, err)
	}
	return reply
}

// text reads a string key, "" where there is none.
func (c *client) text(key string) string {
	c.t.Helper()
	s, err := redis.String(c.must("GET", key), nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		c.t.Fatal(err)
	}
	return s
}

// bar is the bar of a name, without the 0 that acquire.lua may put before it.
func (c *client) bar(name string) string {
	c.t.Helper()
	return strings.TrimPrefix(c.text(prefix.Bar(name)), "0")
}

func (c *client) now() int64 {
	c.t.Helper()
	pair, err := redis.Int64s(c.must("TIME"), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return pair[0]*1e6 + pair[1]
}

// run sends a call with the stamp that a connection would put into it; "" leaves the guard off.
func (c *client) run(call *scripts.Call, stamp string) (any, error) {
	args := append([]any(nil), call.Args...)
	if call.Stamp != 0 {
		args[call.Stamp] = stamp
	}
	return c.Do("EVALSHA", args...)
}

// vote is run for an acquire or an extension, with the guard off.
func (c *client) vote(call *scripts.Call) scripts.Vote {
	c.t.Helper()
	return c.stamped(call, "")
}

func (c *client) stamped(call *scripts.Call, stamp string) scripts.Vote {
	c.t.Helper()
	reply, err := c.run(call, stamp)
	if err != nil {
		c.t.Fatalf("%s: %v", call.Script.Name, err)
	}
	v, err := scripts.DecodeVote(reply)
	if err != nil {
		c.t.Fatalf("%s: %v", call.Script.Name, err)
	}
	return v
}

func (c *client) want(kind scripts.Kind, call *scripts.Call) scripts.Vote {
	c.t.Helper()
	v := c.vote(call)
	if v.Kind != kind {
		c.t.Fatalf("%s is answered by %+v, want %v", call.Script.Name, v, kind)
	}
	return v
}

func (c *client) release(h scripts.Hold, ballot int64, several bool) bool {
	c.t.Helper()
	reply, err := c.run(fleet.ReleaseCall(h, ballot, several, scripts.Reserve), "")
	if err != nil {
		c.t.Fatal(err)
	}
	there, err := scripts.DecodeReleased(reply)
	if err != nil {
		c.t.Fatal(err)
	}
	return there
}

func (c *client) inspect(name string) scripts.Holding {
	c.t.Helper()
	reply, err := c.run(fleet.InspectCall(prefix.Keys(name)), "")
	if err != nil {
		c.t.Fatal(err)
	}
	h, err := scripts.DecodeHolding(reply)
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

func (c *client) admit(r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	reply, err := c.run(fleet.AdmitCall(r), "")
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := scripts.DecodeAdmission(reply)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// wantError runs a call that must fail with an error of this code.
func (c *client) wantError(code string, call *scripts.Call, stamp string) {
	c.t.Helper()
	reply, err := c.run(call, stamp)
	var text redis.Error
	if !errors.As(err, &text) || !strings.HasPrefix(inner(text), code+" ") {
		c.t.Errorf("%s is answered by %v, %v; want an error %s", call.Script.Name, reply, err, code)
	}
}

// inner is the text of an error that a command inside a script gave. Servers before 7.0 wrap it in a text of their own.
func inner(err redis.Error) string {
	text := string(err)
	i := strings.LastIndex(text, "@user_script:")
	if i < 0 || !strings.HasPrefix(text, "ERR Error running script") {
		return text
	}
	_, rest, _ := strings.Cut(strings.TrimSpace(text[i+len("@user_script:"):]), ": ") // behind the number of the line
	return strings.TrimPrefix(rest, "-")
}

func hold(name, id string) scripts.Hold { return scripts.NewHold(prefix.Keys(name), id, "") }

func acquire(h scripts.Hold, ballot int64) *scripts.Call {
	return fleet.AcquireCall(h, scripts.ModeAcquire, ttl, ballot, ballot, 1)
}

func near(got, want, within time.Duration) bool { return got <= want && got >= want-within }

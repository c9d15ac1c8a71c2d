package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Each command of one connection gets the reply of Redis 7.0, as far as clients depend on that reply.
func TestCommands(t *testing.T) {
	m := newMasters(t, 1)
	c := dial(t, m, 0)
	m.Master(0).Flush()
	acquire := scripts.Acquire
	for _, step := range []struct{ command, want string }{
		{"PING", "PONG"},
		{"PING hello", "hello"},
		{"ECHO hello", "hello"},
		{"SELECT 3", "OK"},
		{"SELECT 0", "OK"},
		{"SELECT 16", "ERR DB index"},
		{"SELECT x", "ERR value is not an integer"},
		{"AUTH secret", "ERR AUTH"},
		{"HELLO 3", "ERR unknown command"},
		{"NONSENSE", "ERR unknown command"},
		{"HSET a f 1", "ERR the in-memory master runs"},
		{"CLIENT SETNAME me", "OK"},
		{"CLIENT KILL me", "ERR unknown subcommand"},
		{"CONFIG GET repl-backlog-ttl", "[repl-backlog-ttl 3600]"},
		{"CONFIG GET nonsense", "[]"},
		{"CONFIG SET a b", "ERR unknown subcommand"},
		{"GET", "ERR wrong number of arguments for 'get' command"},
		{"GET a", "<nil>"},
		{"SET a 1", "OK"},
		{"SET a 1 XX PX", "ERR syntax"},
		{"SET none 1 XX PX 1000", "<nil>"},
		{"GET none", "<nil>"},
		{"SET a 1 XX", "OK"},
		{"SET a 1 NO 5", "ERR syntax"},
		{"SET a 1 PX x", "ERR value is not an integer"},
		{"SET a 1 PX 0", "ERR invalid expire"},
		{"GET a", "1"},
		{"PTTL a", "-1"},
		{"PTTL b", "-2"},
		{"SET b 2 EX 100", "OK"},
		{"SET c 3 PX 100000", "OK"},
		{"EXISTS a b c d", "3"},
		{"HGETALL a", "WRONGTYPE"},
		{"HGETALL d", "[]"},
		{"DBSIZE", "3"},
		{"DEL a d", "1"},
		{"FLUSHALL", "OK"},
		{"DBSIZE", "0"},
		{"EVALSHA " + acquire.SHA + " 0", "NOSCRIPT"},
		{"EVALSHA " + acquire.SHA, "ERR wrong number of arguments for 'evalsha' command"},
		{"EVALSHA " + acquire.SHA + " x", "ERR value is not an integer"},
		{"EVALSHA " + acquire.SHA + " -1", "ERR Number of keys can't be negative"},
		{"EVALSHA " + acquire.SHA + " 2 a", "ERR Number of keys can't be greater"},
		{"EVAL return 0", "ERR the in-memory master runs"},
		{"SCRIPT LOAD return", "ERR the in-memory master runs"},
		{"SCRIPT EXISTS " + acquire.SHA, "[0]"},
		{"SCRIPT NONSENSE", "ERR unknown subcommand"},
		{"PUBLISH a b", "0"},
		{"UNSUBSCRIBE", "[unsubscribe <nil> 0]"},
		{"SUBSCRIBE x", "[subscribe x 1]"},
		{"GET a", "ERR Can't execute 'get'"},
		{"PING", "[pong ]"},
		{"PING x", "[pong x]"},
		{"UNSUBSCRIBE", "[unsubscribe x 0]"},
		{"GET a", "<nil>"},
	} {
		words := strings.Fields(step.command)
		args := make([]any, len(words)-1)
		for i, w := range words[1:] {
			args[i] = w
		}
		reply, err := c.Do(words[0], args...)
		if got := show(reply, err); !strings.HasPrefix(got, step.want) || step.want == "" {
			t.Errorf("the reply to %s is %s, want %s", step.command, got, step.want)
		}
	}
}

// show formats a reply as text.
func show(reply any, err error) string {
	switch v := reply.(type) {
	case nil:
		if err != nil {
			return err.Error()
		}
		return "<nil>"
	case []byte:
		return string(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = show(e, nil)
		}
		return "[" + strings.Join(parts, " ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

func TestScriptsAreCachedByLoadAndByEval(t *testing.T) {
	m := newMasters(t, 1)
	c := dial(t, m, 0)
	keys := prefix.Keys("a")
	_, bySHA := deployment.Inspect(&keys, 0).Args("", false)
	_, byText := deployment.Inspect(&keys, 0).Args("", true)
	if _, err := c.Do("EVALSHA", bySHA...); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Errorf("EVALSHA of an unknown script returned %v, want NOSCRIPT", err)
	}
	if _, err := c.Do("EVAL", byText...); err != nil {
		t.Error(err)
	}
	if _, err := c.Do("EVALSHA", bySHA...); err != nil {
		t.Errorf("EVAL did not cache the script: %v", err)
	}
	if _, err := c.Do("SCRIPT", "FLUSH"); err != nil {
		t.Error(err)
	}
	if _, err := c.Do("EVALSHA", bySHA...); err == nil {
		t.Error("SCRIPT FLUSH did not remove the script")
	}
}

// A client that violates the protocol is disconnected, and other clients are not affected.
func TestWrongBytesEndTheConnection(t *testing.T) {
	m := newMasters(t, 1)
	for _, text := range []string{
		"*x\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$1\r\nabc\r\n", "*99999999999\r\n",
	} {
		nc := must.Get(m.Dial(t.Context(), "tcp", m.Master(0).Addr()))(t)
		go func() { _, _ = nc.Write([]byte(text)) }() // returns when the connection is closed, or earlier
		if n, err := nc.Read(make([]byte, 1)); err == nil {
			t.Errorf("the master replied to %q with %d bytes, want a closed connection", text, n)
		}
		_ = nc.Close()
	}
	if _, err := dial(t, m, 0).Do("PING"); err != nil {
		t.Error(err)
	}
	nc := must.Get(m.Dial(t.Context(), "tcp", m.Master(0).Addr()))(t)
	defer nc.Close()
	plain := redis.NewConn(nc, 0, 0)
	go func() { _, _ = nc.Write([]byte("\r\n*0\r\nPING\r\n")) }() // blank lines and empty arrays are skipped
	if got, err := redis.String(plain.Receive()); got != "PONG" {
		t.Errorf("the reply to an inline command is %q, %v", got, err)
	}
}

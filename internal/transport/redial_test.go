package transport

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H52, H50: an unfit server is refused with an error that names the fix. After the fix the server comes up without
// further action.
func TestUnfitMastersAreRefused(t *testing.T) {
	master := startServer(t)
	for _, c := range []struct {
		name   string
		args   []string
		says   []string
		repair []any
	}{
		{"eviction", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"},
			[]string{"allkeys-lru", "second holder", "set maxmemory-policy to noeviction"},
			[]any{"CONFIG", "SET", "maxmemory-policy", "noeviction"}},
		{"volatile eviction", []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"},
			[]string{"volatile-ttl"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		{"replica", []string{"--replicaof", "127.0.0.1", master.Port()},
			[]string{"it is a replica", "use the address of its master instead"}, []any{"REPLICAOF", "NO", "ONE"}},
		{"cluster", []string{"--cluster-enabled", "yes"}, []string{"cluster", "cluster-enabled no"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, c.args...)
			p := open(t, []string{srv.URL()})
			err := waitDown(t, p, 0, fault.ErrRefused)
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the text %q is not in the error %q", s, err)
				}
			}
			err = p.Send(0, inspect("x"), Condition{}, newMailbox())
			if !errors.Is(err, fault.ErrRefused) || !errors.Is(err, fault.ErrDown) {
				t.Errorf("Send to an unfit master returned %v", err)
			}
			if c.repair != nil {
				srv.Do(c.repair...)
				waitUp(t, p)
			}
		})
	}
}

// A dialer that panics or returns no connection does not end the program: the master is down with that reason.
func TestDialerFails(t *testing.T) {
	for want, dial := range map[string]func(){
		"the dialer failed: it panicked":    func() { panic("x") },
		"the dialer returned no connection": func() {},
	} {
		synctest.Test(t, func(t *testing.T) {
			own := Set(true, func(c *Config) {
				c.Dialer = func(context.Context, string, string) (net.Conn, error) { dial(); return nil, nil }
			}, "")
			shared := FromRedisPool("shared", &redis.Pool{Dial: func() (redis.Conn, error) { dial(); return nil, nil }})
			for _, m := range []Master{URL("redis://m1", own), shared} {
				p := must.Get(New([]Master{m}))(t)
				if err := waitDown(t, p, 0, fault.ErrDown); !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
				_ = p.Close()
			}
		})
	}
}

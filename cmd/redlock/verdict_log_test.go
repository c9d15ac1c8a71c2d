//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/redlock"
)

// A clientLog follows the log of a client: what an operator who reads all of it believes.
type clientLog struct {
	t *testing.T

	mu    sync.Mutex
	out   map[string]string // why masters do not vote, by master
	short bool              // no lock can be acquired
	text  []byte            // all of it
}

// logs starts a client that tries a lock again and again, and returns its log.
func (f *deployment) logs() *clientLog {
	f.t.Helper()
	l, log := openLogged(f.t, f.urls)
	if err := l.WaitReady(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	log.tries(l)
	return log
}

// openLogged opens a client with these flags and URLs, and returns it with its log.
func openLogged(t *testing.T, masters []string, opts ...redlock.Option) (*client, *clientLog) {
	t.Helper()
	log := &clientLog{t: t, out: map[string]string{}}
	return open(t, masters, append(opts, redlock.WithLabel("logs"),
		redlock.WithLogger(slog.New(slog.NewJSONHandler(log, nil))))...), log
}

// tries makes l try a lock again and again until the test ends.
func (c *clientLog) tries(l *client) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = l.Do(ctx, "tried", func(context.Context, *redlock.Lock) error { return nil }) // the log says why it failed
			time.Sleep(50 * time.Millisecond)
		}
	})
	c.t.Cleanup(func() {
		cancel()
		wg.Wait()
		l.close()
	})
}

// Write implements io.Writer for one record.
func (c *clientLog) Write(line []byte) (int, error) {
	var r struct {
		Msg, Level, Master, Reason string
		Masters                    []struct{ Master, Reason string }
	}
	if err := json.Unmarshal(line, &r); err != nil {
		c.t.Errorf("the log has the line %s: %v", line, err)
	}
	if len(line) > 500 {
		c.t.Errorf("a line of the log has %d bytes: %s", len(line), line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, line...)
	switch r.Msg {
	case "redlock: master is down", "redlock: master does not vote", "redlock: master is failing":
		c.out[r.Master] = r.Reason
	case "redlock: master votes", "redlock: master grants locks again":
		delete(c.out, r.Master)
	case "redlock: no lock can be acquired":
		c.short = true
		for _, m := range r.Masters {
			for master := range strings.SplitSeq(m.Master, ", ") {
				c.out[master] = m.Reason
			}
		}
	case "redlock: locks can be acquired again":
		c.short = false
	}
	return len(line), nil
}

// all returns the text of the log.
func (c *clientLog) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// contradicts returns in which ways the log contradicts the other outputs.
func (c *clientLog) contradicts(v *verdictSeen) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.short == v.check.CanLock {
		list = append(list, fmt.Sprintf("the log says %v, no lock can be acquired", c.short))
	}
	var out []string
	for _, m := range v.status.Masters {
		if m.State != "voting" {
			out = append(out, m.Addr)
			if c.out[m.Addr] == "" {
				list = append(list, "the log does not say why "+m.Addr+" does not vote")
			}
		}
	}
	if logged := slices.Sorted(maps.Keys(c.out)); len(logged) > len(out) {
		list = append(list, fmt.Sprintf("the log says that %q do not vote", logged))
	}
	return list
}

// A master that grants locks and refuses to extend them is failing for a client that does both, until it extends locks
// again. This is logged once, and check and status agree with it.
func TestMasterThatRefusesExtensionsIsFailing(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	l, log := openLogged(t, f.urls)
	if err := l.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.tries(l)
	if _, err := l.Lock(t.Context(), "long", redlock.WithTTL(3*time.Second)); err != nil {
		t.Fatal(err)
	}
	f.do(1, "ACL", "SETUSER", "default", "-hmget")
	agree(t, "no right to extend", f.urls, exitDanger, 0, log.contradicts)
	f.do(1, "ACL", "SETUSER", "default", "+hmget")
	agree(t, "the right again", f.urls, exitDone, 1, log.contradicts)
	text := log.all()
	if n := strings.Count(text, "redlock: master is failing"); n != 1 {
		t.Errorf("the log says %d times that a master is failing:\n%s", n, text)
	}
}

// kick ends the connections of all clients of server i but this one.
func (f *deployment) kick(i int) { f.as(i, "secret", "CLIENT", "KILL", "TYPE", "normal") }

// as sends a command to server i with a password.
func (f *deployment) as(i int, password string, command string, args ...any) {
	f.t.Helper()
	c, err := redis.Dial("tcp", f.servers[i].Addr(), redis.DialPassword(password))
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(command, args...); err != nil && !strings.Contains(err.Error(), "EOF") {
		f.t.Fatal(err)
	}
}

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
}

// logs starts a client that tries a lock again and again, and returns its log.
func (f *deployment) logs() *clientLog {
	f.t.Helper()
	log := &clientLog{t: f.t, out: map[string]string{}}
	l, err := redlock.Open(f.urls, redlock.WithLabel("logs"), redlock.WithLogger(slog.New(slog.NewJSONHandler(log, nil))))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := l.WaitReady(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = l.Do(ctx, "tried", func(context.Context, *redlock.Lock) error { return nil }) // the log says why it failed
			time.Sleep(50 * time.Millisecond)
		}
	})
	f.t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = l.Close()
	})
	return log
}

// Write implements io.Writer for one record.
func (c *clientLog) Write(line []byte) (int, error) {
	var r struct{ Msg, Level, Master, Reason string }
	if err := json.Unmarshal(line, &r); err != nil {
		c.t.Errorf("the log has the line %s: %v", line, err)
	}
	if len(line) > 500 {
		c.t.Errorf("a line of the log has %d bytes: %s", len(line), line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Msg {
	case "redlock: master is down", "redlock: master does not vote", "redlock: master is failing":
		c.out[r.Master] = r.Reason
	case "redlock: master votes", "redlock: master grants locks again":
		delete(c.out, r.Master)
	case "redlock: no lock can be acquired":
		c.short = true
	case "redlock: locks can be acquired again":
		c.short = false
	}
	return len(line), nil
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

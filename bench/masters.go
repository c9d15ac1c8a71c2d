package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// started is the number of masters that are started if none are given.
const started = 5

// masters describes the masters of the measurement.
type masters struct {
	urls    []string
	servers []*redisproc.Server // the servers that were started; nil if the masters were given
}

// openMasters returns the given masters. Without them it starts servers, which close stops.
func openMasters(ctx context.Context, urls []string) (m *masters, err error) {
	if m = (&masters{urls: urls}); len(urls) == 0 {
		m.servers, err = redisproc.StartN(ctx, started, redisproc.Config{Name: "bench"})
	}
	for _, s := range m.servers {
		m.urls = append(m.urls, s.URL())
	}
	return m, err
}

func (m *masters) close() (err error) {
	for _, s := range m.servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// each calls f with a connection to every master, one after the other, until a call fails.
func (m *masters) each(ctx context.Context, f func(c redis.Conn) error) error {
	for i, u := range m.urls {
		c, err := redis.DialURLContext(ctx, u, redis.DialConnectTimeout(5*time.Second),
			redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
		if err == nil {
			err = errors.Join(f(c), c.Close())
		}
		if err != nil {
			return fmt.Errorf("master %d: %w", i+1, err)
		}
	}
	return nil
}

// A state is what all masters report of themselves.
type state struct {
	at      time.Time          // the middle of the time in which the masters were asked
	version string             // of the last master
	cpu     float64            // processor time since the start, user and system, in us
	calls   map[string]float64 // calls of each command since the start
	clients float64            // largest number of clients of a master
}

func (m *masters) state(ctx context.Context) (*state, error) {
	s, start := &state{calls: map[string]float64{}}, time.Now()
	err := m.each(ctx, func(c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", "everything"))
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			command, isCommand := strings.CutPrefix(name, "cmdstat_")
			var number float64
			_, _ = fmt.Sscan(strings.TrimPrefix(value, "calls="), &number)
			switch {
			case isCommand:
				s.calls[command] += number
			case name == "redis_version", name == "valkey_version": // Valkey has both, its own last
				s.version = strings.TrimSuffix(name, "_version") + " " + value
			case name == "connected_clients":
				s.clients = max(s.clients, number)
			case name == "used_cpu_user", name == "used_cpu_sys":
				s.cpu += number * 1e6
			}
		}
		return err
	})
	s.at = start.Add(time.Since(start) / 2)
	return s, err
}

// since returns the calls of the named commands and the processor time since the earlier state.
func (s *state) since(old *state, commands []string) (calls, cpu float64) {
	for _, name := range commands {
		calls += s.calls[name] - old.calls[name]
	}
	return calls, s.cpu - old.cpu
}

// sweep removes every key under prefix, and returns how many it has removed from all masters together. prefix must not
// contain pattern characters.
func (m *masters) sweep(ctx context.Context, prefix string) (removed float64, err error) {
	return removed, m.each(ctx, func(c redis.Conn) error {
		var keys []string
		for cursor := ""; cursor != "0"; {
			var page []string
			reply, err := redis.Values(c.Do("SCAN", cmp.Or(cursor, "0"), "MATCH", prefix+"*", "COUNT", "1000"))
			if err == nil {
				_, err = redis.Scan(reply, &cursor, &page)
			}
			if err != nil {
				return err
			}
			keys = append(keys, page...)
		}
		removed += float64(len(keys))
		for batch := range slices.Chunk(keys, 500) {
			if _, err := c.Do("UNLINK", redis.Args{}.AddFlat(batch)...); err != nil {
				return err
			}
		}
		return nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// number of masters that are started where none are given
const started = 5

// The kinds of masters, as the report names them.
const (
	kindGiven   = "given"
	kindProcess = "processes"
	kindMemory  = "in memory"
)

// masters are what is measured against.
type masters struct {
	kind    string
	note    string // what the reader must know
	urls    []string
	servers []*redisproc.Server // kindProcess
	memory  *memory             // kindMemory
}

// openMasters takes those of the command line, or starts some. What it started ends with close.
func openMasters(ctx context.Context, c *config) (*masters, error) {
	if len(c.masters) > 0 {
		return &masters{kind: kindGiven, urls: c.masters}, nil
	}
	if c.source != sourceMemory {
		_, err := redisproc.Find()
		if err == nil {
			return startProcesses(ctx)
		}
		if c.source == sourceProcess {
			return nil, err
		}
		m, merr := startMemory()
		if merr == nil {
			m.note += " (" + strings.TrimPrefix(err.Error(), "redisproc: ") + ")"
		}
		return m, merr
	}
	return startMemory()
}

func startProcesses(ctx context.Context) (*masters, error) {
	servers, err := redisproc.StartN(ctx, started, redisproc.Config{Name: "bench"})
	if err != nil {
		return nil, err
	}
	m := &masters{kind: kindProcess, servers: servers}
	for _, s := range servers {
		m.urls = append(m.urls, s.URL())
	}
	return m, nil
}

func startMemory() (*masters, error) {
	mem, err := newMemory(started)
	if err != nil {
		return nil, err
	}
	return &masters{
		kind: kindMemory, memory: mem, urls: mem.urls(),
		note: "the masters are in this very process: the figures describe the client only, " +
			"and share the processors with the masters",
	}, nil
}

func (m *masters) close() error {
	var errs []error
	for _, s := range m.servers {
		errs = append(errs, s.Stop())
	}
	if m.memory != nil {
		m.memory.close()
	}
	return errors.Join(errs...)
}

// apart reports whether the masters are outside this process, so that its own allocations and processor time are the
// client's.
func (m *masters) apart() bool { return m.kind != kindMemory }

// dialMaster opens a connection of the benchmark's own. The address stands in errors without credentials.
func dialMaster(ctx context.Context, i int, url string) (redis.Conn, error) {
	c, err := redis.DialURLContext(ctx, url, redis.DialConnectTimeout(5*time.Second),
		redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("bench: master %d: %w", i+1, err)
	}
	return c, nil
}

// each calls f with a connection to every master, one after the other, until one fails.
func (m *masters) each(ctx context.Context, f func(i int, c redis.Conn) error) error {
	for i, u := range m.urls {
		c, err := dialMaster(ctx, i, u)
		if err != nil {
			return err
		}
		err = f(i, c)
		if cerr := c.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("bench: master %d: %w", i+1, err)
		}
	}
	return nil
}

// versions lists what the masters say they are, each version once.
func (m *masters) versions(ctx context.Context) (string, error) {
	var list []string
	err := m.each(ctx, func(_ int, c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", "server"))
		if err != nil {
			return err
		}
		v := "redis " + infoField(info, "redis_version")
		if valkey := infoField(info, "valkey_version"); valkey != "" {
			v = "valkey " + valkey
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
		return nil
	})
	return strings.Join(list, ", "), err
}

// cpu is the processor time that all masters have used together, false where it is not known.
func (m *masters) cpu(ctx context.Context) (time.Duration, bool) {
	if m.kind != kindProcess {
		return 0, false
	}
	var sum float64
	err := m.each(ctx, func(_ int, c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", "cpu"))
		if err != nil {
			return err
		}
		for _, field := range []string{"used_cpu_sys", "used_cpu_user"} {
			seconds, err := strconv.ParseFloat(infoField(info, field), 64)
			if err != nil {
				return err
			}
			sum += seconds
		}
		return nil
	})
	return time.Duration(sum * float64(time.Second)), err == nil
}

// connections counts the clients of each master, without the connection that asks.
func (m *masters) connections(ctx context.Context) ([]int, error) {
	if m.memory != nil {
		return m.memory.connections(), nil
	}
	counts := make([]int, len(m.urls))
	err := m.each(ctx, func(i int, c redis.Conn) error {
		list, err := redis.String(c.Do("CLIENT", "LIST"))
		if err != nil {
			return err
		}
		counts[i] = strings.Count(strings.TrimSpace(list), "\n")
		return nil
	})
	return counts, err
}

// keys lists the keys of master i that begin with prefix, which has no pattern characters.
func scanKeys(c redis.Conn, prefix string) ([]string, error) {
	var all []string
	cursor := "0"
	for {
		reply, err := redis.Values(c.Do("SCAN", cursor, "MATCH", prefix+"*", "COUNT", "1000"))
		if err != nil {
			return nil, err
		}
		var page []string
		if _, err := redis.Scan(reply, &cursor, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if cursor == "0" {
			return all, nil
		}
	}
}

// lockKeys counts the keys of locks under prefix on all masters.
func (m *masters) lockKeys(ctx context.Context, prefix string) (int, error) {
	count := func(keys []string) (n int) {
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && strings.HasSuffix(k, ":lock") {
				n++
			}
		}
		return n
	}
	if m.memory != nil {
		return count(m.memory.keys()), nil
	}
	n := 0
	err := m.each(ctx, func(_ int, c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		n += count(keys)
		return err
	})
	return n, err
}

// leftBehind waits a second for the last releases to land and returns how many lock keys are left.
func (m *masters) leftBehind(ctx context.Context, prefix string) (int, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for try := 0; ; try++ {
		n, err := m.lockKeys(ctx, prefix)
		if err != nil || n == 0 || try == 50 {
			return n, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
}

// sweep removes every key under prefix.
func (m *masters) sweep(ctx context.Context, prefix string) error {
	if m.memory != nil {
		return nil
	}
	return m.each(ctx, func(_ int, c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(keys, 500) {
			if _, err := c.Do("DEL", redis.Args{}.AddFlat(batch)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

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
	note    string              // what the reader must know
	urls    []string            // what contenders connect to
	direct  []string            // what the benchmark itself connects to; the same, but where proxies stand between
	far     *far                // nil where they are as far as they are
	servers []*redisproc.Server // kindProcess
	memory  *memory             // kindMemory
}

// openMasters takes those of the command line, or starts some. What it started ends with close.
func openMasters(ctx context.Context, c *config) (*masters, error) {
	m, err := findMasters(ctx, c)
	if err != nil {
		return nil, err
	}
	m.direct = m.urls
	if err := m.goAway(ctx, c.rtt); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// goAway puts every master as far away as the list says: one round trip for all, or one for each.
func (m *masters) goAway(ctx context.Context, roundTrips []time.Duration) error {
	if len(roundTrips) == 0 {
		return nil
	}
	if len(roundTrips) > 1 && len(roundTrips) != len(m.urls) {
		return fmt.Errorf("bench: -rtt has %d round trips for %d masters: give one for all, or one for each", len(roundTrips), len(m.urls))
	}
	var list []distance
	for i, u := range m.direct {
		list = append(list, distance{u, roundTrips[i%len(roundTrips)]})
	}
	f, err := goFar(ctx, list)
	if err == nil {
		m.far, m.urls = f, f.urls
	}
	return err
}

func findMasters(ctx context.Context, c *config) (*masters, error) {
	if len(c.masters) > 0 {
		return &masters{kind: kindGiven, urls: c.masters}, nil
	}
	if c.source != sourceMemory {
		_, err := redisproc.Find()
		if err == nil {
			return startProcesses(ctx, started)
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

func startProcesses(ctx context.Context, n int) (*masters, error) {
	servers, err := redisproc.StartN(ctx, n, redisproc.Config{Name: "bench"})
	if err != nil {
		return nil, err
	}
	m := &masters{kind: kindProcess, servers: servers}
	for _, s := range servers {
		m.urls = append(m.urls, s.URL())
	}
	m.direct = m.urls
	return m, nil
}

// pids are the processes of the masters that were started.
func (m *masters) pids() (list []int) {
	for _, s := range m.servers {
		list = append(list, s.PID())
	}
	return list
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

// first is the first n of the masters. It is not closed.
func (m *masters) first(n int) *masters {
	f := *m
	f.urls, f.direct = m.urls[:n], m.direct[:n]
	if m.servers != nil {
		f.servers = m.servers[:n]
	}
	return &f
}

func (m *masters) close() error {
	var errs []error
	if m.far != nil {
		errs = append(errs, m.far.close())
	}
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
	for i, u := range m.direct {
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

// A load is what the masters have done so far, all of them together. A negative figure is not known.
type load struct {
	masters  int
	cpu      time.Duration
	commands int64
}

// load asks servers that it has started for it, and other masters for the commands alone. wire lists the commands that
// are counted.
func (m *masters) load(ctx context.Context, wire []string) load {
	l := load{masters: len(m.urls), cpu: -1, commands: -1}
	if n, err := m.commands(ctx, wire); err == nil {
		l.commands = n
	}
	if m.kind == kindProcess && len(m.servers) > 0 {
		if d, err := m.cpu(ctx); err == nil {
			l.cpu = d
		}
	}
	return l
}

// since is the processor time in us and the commands, a pair, -1 where it is not known; commands are also a master.
func (l load) since(before load, pairs float64) (cpu, commands float64) {
	cpu, commands = -1, -1
	if l.cpu >= 0 && before.cpu >= 0 {
		cpu = micros(l.cpu-before.cpu) / pairs
	}
	if l.commands >= 0 && before.commands >= 0 {
		commands = float64(l.commands-before.commands) / pairs / float64(l.masters)
	}
	return cpu, commands
}

func (m *masters) cpu(ctx context.Context) (time.Duration, error) {
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
	return time.Duration(sum * float64(time.Second)), err
}

// commands counts the calls of the named commands on all masters; -1 where masters do not count.
func (m *masters) commands(ctx context.Context, names []string) (int64, error) {
	if m.memory != nil || len(names) == 0 {
		return -1, nil
	}
	var sum int64
	err := m.each(ctx, func(_ int, c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", "commandstats"))
		sum += commandCounts(info, names)
		return err
	})
	return sum, err
}

// connections is the most clients that a master has, without the connection that asks.
func (m *masters) connections(ctx context.Context) (most int, err error) {
	if m.memory != nil {
		return slices.Max(m.memory.connections()), nil
	}
	err = m.each(ctx, func(i int, c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", "clients"))
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(infoField(info, "connected_clients"))
		most = max(most, n-1)
		return err
	})
	return most, err
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

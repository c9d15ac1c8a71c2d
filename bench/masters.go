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

// started is the number of masters that are started if none are given.
const started = 5

// Kinds of masters, as the report names them.
const kindGiven, kindProcess = "given", "processes"

// masters describes the masters of the measurement.
type masters struct {
	urls    []string
	servers []*redisproc.Server // the servers that were started; nil if the masters were given
}

// openMasters returns the masters of -masters. Without this flag it starts servers, which close stops.
func openMasters(ctx context.Context, c *config) (*masters, error) {
	if len(c.masters) > 0 {
		return &masters{urls: c.masters}, nil
	}
	return startMasters(ctx, started)
}

func startMasters(ctx context.Context, n int) (*masters, error) {
	servers, err := redisproc.StartN(ctx, n, redisproc.Config{Name: "bench"})
	if err != nil {
		return nil, err
	}
	m := &masters{servers: servers}
	for _, s := range servers {
		m.urls = append(m.urls, s.URL())
	}
	return m, nil
}

func (m *masters) kind() string {
	if m.servers == nil {
		return kindGiven
	}
	return kindProcess
}

func (m *masters) close() (err error) {
	for _, s := range m.servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// dialMaster opens a connection for the benchmark itself. Its errors contain the address without credentials.
func dialMaster(ctx context.Context, i int, url string) (redis.Conn, error) {
	c, err := redis.DialURLContext(ctx, url, redis.DialConnectTimeout(5*time.Second),
		redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("bench: master %d: %w", i+1, err)
	}
	return c, nil
}

// each calls f with a connection to every master, one after the other, until a call fails.
func (m *masters) each(ctx context.Context, f func(c redis.Conn) error) error {
	for i, u := range m.urls {
		c, err := dialMaster(ctx, i, u)
		if err != nil {
			return err
		}
		if err := errors.Join(f(c), c.Close()); err != nil {
			return fmt.Errorf("bench: master %d: %w", i+1, err)
		}
	}
	return nil
}

// eachInfo calls f with a section of the INFO reply of every master.
func (m *masters) eachInfo(ctx context.Context, section string, f func(info string) error) error {
	return m.each(ctx, func(c redis.Conn) error {
		info, err := redis.String(c.Do("INFO", section))
		if err != nil {
			return err
		}
		return f(info)
	})
}

// versions returns the different versions of the masters.
func (m *masters) versions(ctx context.Context) (string, error) {
	var list []string
	err := m.eachInfo(ctx, "server", func(info string) error {
		v := "redis " + infoField(info, "redis_version")
		if valkey := infoField(info, "valkey_version"); valkey != "" {
			v = "valkey " + valkey
		}
		list = appendNew(list, v)
		return nil
	})
	return strings.Join(list, ", "), err
}

// A load is the work of all masters since their start.
type load struct {
	commands int64
	cpu      float64 // seconds, user and system
}

// load returns the number of calls of the named commands, and the processor time, of all masters together.
func (m *masters) load(ctx context.Context, names []string) (l load, err error) {
	err = m.eachInfo(ctx, "commandstats", func(info string) error {
		l.commands += commandCounts(info, names)
		return nil
	})
	cpu := m.eachInfo(ctx, "cpu", func(info string) error {
		user, uerr := strconv.ParseFloat(infoField(info, "used_cpu_user"), 64)
		system, serr := strconv.ParseFloat(infoField(info, "used_cpu_sys"), 64)
		l.cpu += user + system
		return errors.Join(uerr, serr)
	})
	return l, errors.Join(err, cpu)
}

// commandCounts returns the number of calls of the named commands in the text of INFO commandstats.
func commandCounts(info string, names []string) (n int64) {
	for _, name := range names {
		var calls int64
		_, _ = fmt.Sscanf(infoField(info, "cmdstat_"+name), "calls=%d", &calls)
		n += calls
	}
	return n
}

// connections returns the largest number of clients of a master, without the connection that reads this number.
func (m *masters) connections(ctx context.Context) (most int, err error) {
	err = m.eachInfo(ctx, "clients", func(info string) error {
		n, err := strconv.Atoi(infoField(info, "connected_clients"))
		most = max(most, n-1)
		return err
	})
	return most, err
}

// sweep removes every key under prefix.
func (m *masters) sweep(ctx context.Context, prefix string) error {
	return m.each(ctx, func(c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		for batch := range slices.Chunk(keys, 500) {
			_, failed := c.Do("DEL", redis.Args{}.AddFlat(batch)...)
			err = errors.Join(err, failed)
		}
		return err
	})
}

// infoField returns the value of a field of INFO, or "" if INFO does not contain the field.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

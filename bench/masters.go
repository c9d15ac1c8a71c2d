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
)

// masters are what is measured against.
type masters struct {
	urls    []string
	servers []*redisproc.Server // those that were started, nil where none were
}

// openMasters takes those of the command line, or starts some. What it started ends with close.
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

func (m *masters) close() error {
	var errs []error
	for _, s := range m.servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

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

// commands counts the calls of the named commands on all masters; -1 where none are named.
func (m *masters) commands(ctx context.Context, names []string) (int64, error) {
	if len(names) == 0 {
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

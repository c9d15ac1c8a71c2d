package redlocktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// Admit lets real servers vote immediately: new servers that a test has started, for example in containers. urls must
// name all of them, and have the scheme redis, rediss, valkey or valkeys. Until ctx ends, Admit waits for servers that
// do not answer yet. It admits the servers for the default prefix and the default max TTL of package redlock; for other
// values, and for URLs of sentinels and clusters, use Admin.Admit of package admin.
//
// Admit must only be used for servers on which no client can hold a lock. It may be repeated. The error names each
// server that was not admitted; the other servers are admitted.
func Admit(ctx context.Context, urls ...string) error {
	switch {
	case ctx == nil:
		return errors.New("redlocktest: Admit: the context is nil")
	case len(urls) == 0:
		return errors.New("redlocktest: Admit: no URLs: name all servers")
	}
	errs, list := make([]error, len(urls)), make([]string, len(urls))
	for i, u := range urls {
		list[i] = pool.URL(u).Name
	}
	names := scripts.List(list)
	var servers sync.WaitGroup
	for i, u := range urls {
		servers.Go(func() { errs[i] = admitServer(ctx, u, names) })
	}
	servers.Wait()
	return errors.Join(errs...)
}

// admitPause is the pause between two attempts to admit a server.
const admitPause = 20 * time.Millisecond

// admitServer admits one server, and retries until ctx ends. names lists all the servers.
func admitServer(ctx context.Context, rawurl, names string) error {
	server := transport.URL(rawurl)
	if err := server.Err(); err != nil {
		return err
	}
	switch scheme, _, _ := strings.Cut(rawurl, ":"); strings.ToLower(scheme) {
	case "redis", "rediss", "valkey", "valkeys":
	default:
		return fmt.Errorf("redlocktest: Admit: %s: the scheme %q is not one of redis, rediss, valkey, valkeys",
			server.Name, scheme)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := errors.New("not tried")
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("redlocktest: %s was not admitted: %w: %w", server.Name, context.Cause(ctx), last)
		}
		if last = admitOnce(ctx, rawurl, names); last == nil {
			return nil
		}
		timer.Reset(admitPause)
	}
}

func admitOnce(ctx context.Context, rawurl, names string) error {
	rawurl, _, _ = strings.Cut(rawurl, "?") // redigo does not support the URL parameter "name"
	c, err := redis.DialURLContext(ctx, rawurl, redis.DialReadTimeout(time.Second), redis.DialWriteTimeout(time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	enc := scripts.NewEncoder(scripts.DefaultPrefix, 0)
	step := func(r scripts.AdmitRequest) (scripts.Admission, error) {
		call := enc.Admit(r)
		command, args := call.Args("", true)
		reply, err := redis.DoContext(c, ctx, command, args...)
		if err != nil {
			return scripts.Admission{}, err
		}
		return scripts.DecodeAdmission(reply)
	}
	seen, err := step(scripts.AdmitRequest{Step: scripts.AdmitRead})
	if err != nil {
		return err
	}
	if r, err := scripts.ParseRecord(seen.Record); err == nil && r.Admitted && r.Identity == seen.Identity {
		return nil
	}
	for _, next := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitNow} {
		done, err := step(scripts.AdmitRequest{
			Step: next, Identity: seen.Identity, Seen: seen.Record, Median: seen.Time, Tolerance: time.Hour,
			Record: scripts.Record{Masters: names, MaxTTL: scripts.DefaultMaxTTL, Quarantine: scripts.DefaultMaxTTL},
		})
		if err != nil {
			return err
		}
		if done.Result != scripts.AdmitDone {
			return fmt.Errorf("admission record not written: result %d, record %q", done.Result, done.Record)
		}
		seen.Record = done.Record
	}
	return nil
}

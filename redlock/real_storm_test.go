package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H175: many Lockers start in one process, each with a pool of its own and the default limits, also while this process
// has busy loops on two processors. All masters vote for all of them, each of them gets a lock, and few connections are
// made in vain. The log contains the time that this takes: a few seconds if the machine does nothing else.
func TestManyLockersStart(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it starts hundreds of Lockers")
	}
	for _, c := range []struct {
		lockers, loops int
		secure         bool
	}{
		{300, 0, false}, {300, 2, false}, {60, 0, true}, {60, 2, true},
	} {
		t.Run(fmt.Sprintf("lockers=%d,loops=%d,tls=%v", c.lockers, c.loops, c.secure), func(t *testing.T) {
			f := &deployment{tester: tester{t}}
			var opts []pool.Option
			if c.secure {
				dir := redistest.Certificates(t)
				conf, err := redistest.ClientTLS(dir)
				f.must(err)
				opts = append(opts, pool.WithTLSConfig(conf))
				for range 5 {
					s, addr := redistest.SecureIn(t, dir, "no")
					f.servers, f.urls = append(f.servers, s), append(f.urls, "rediss://"+addr)
				}
			} else {
				f = newDeployment(t, 5)
			}
			first := locker(t, f.dial(opts...))
			f.admit(first)
			must(first.Lock(f.Context(), "held"))(f) // the others wait for it, so each has a second connection to each master

			var end atomic.Bool
			var loops sync.WaitGroup
			defer loops.Wait()
			defer end.Store(true)
			for range c.loops {
				loops.Go(func() {
					for !end.Load() {
					}
				})
			}
			f.storm(c.lockers, opts)
		})
	}
}

// calmStorm only bounds the time of a failure.
const calmStorm = 2 * time.Minute

// storm starts n Lockers, and waits until all of them are connected.
func (f *deployment) storm(n int, opts []pool.Option) {
	f.Helper()
	received := func() (all int) {
		for i := range f.servers {
			text, err := redis.String(f.do(i, "INFO", "stats"), nil)
			f.must(err)
			_, count, _ := strings.Cut(text, "total_connections_received:")
			count, _, _ = strings.Cut(count, "\r\n")
			number, err := strconv.Atoi(count)
			f.must(err)
			all += number
		}
		return all
	}
	before, began := received(), time.Now()
	lockers := make([]*redlock.Locker, n)
	for i := range lockers {
		p, err := pool.Open(f.urls, opts...)
		f.must(err)
		f.Cleanup(func() { p.Close() })
		lockers[i] = locker(f, p)
	}
	opened := time.Since(began)
	ctx, cancel := context.WithCancel(context.Background())
	bound, stop := context.WithTimeout(ctx, calmStorm)
	defer stop()
	var waiting, locking sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for i, l := range lockers {
		waiting.Go(func() {
			if k, err := l.Lock(ctx, "held"); err == nil {
				_ = k.Unlock(ctx) // the first Locker has lost it, which take reports
			}
		})
		locking.Go(func() {
			lock, err := l.Lock(bound, fmt.Sprint("own:", i))
			f.noError(err)
			if err == nil {
				_ = lock.Unlock(bound) // on an overloaded machine, connections may break again
			}
		})
	}
	locking.Wait()
	locked := time.Since(began)
	eventually(f, calmStorm, func() string {
		for i, l := range lockers {
			for _, m := range l.Masters() {
				if m.State != "voting" {
					return fmt.Sprintf("a master of Locker %d is %s: %v", i, m.State, m.Err)
				}
			}
		}
		return ""
	})
	voting := time.Since(began)
	eventually(f, calmStorm, func() string { // the inboxes of all Lockers
		for i := range f.servers {
			if list, _ := redis.Strings(f.do(i, "PUBSUB", "CHANNELS"), nil); len(list) <= n {
				return fmt.Sprintf("master %d has %d inboxes", i, len(list))
			}
		}
		return ""
	})
	made, needed := received()-before, 2*n*len(f.servers)
	f.Logf("opened after %v, all have had a lock after %v, all vote after %v, subscribed after %v: %d connections for %d",
		opened, locked, voting, time.Since(began), made, needed)
	if made > 2*needed {
		f.Errorf("%d connections were made to get %d", made, needed)
	}
}

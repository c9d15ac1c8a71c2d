package floor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The scripts return 1 on success. acquire returns 0 if the name is locked, and release returns 0 if the caller does
// not hold the lock.
const (
	// KEYS: the lock. ARGV: the holder, the TTL in ms.
	acquire = `if redis.call("exists", KEYS[1]) == 1 then return 0 end
redis.call("hset", KEYS[1], ARGV[1], 1)
redis.call("pexpire", KEYS[1], ARGV[2])
return 1`
	// KEYS: the lock, the channel. ARGV: the holder.
	release = `if redis.call("hexists", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("del", KEYS[1])
redis.call("publish", KEYS[2], 1)
return 1`
)

// ErrNoMajority is returned by Lock and Unlock if a majority of the masters did not execute the request
// successfully.
var ErrNoMajority = errors.New("floor: no majority")

// A Floor is a set of masters with one connection each. Its methods are safe for concurrent use.
type Floor struct {
	prefix           string
	ttl              time.Duration
	millis           any // ARGV of acquire: the TTL in ms, or the life of the library's keys; boxed once
	id               string
	seq              atomic.Uint64
	conns            []*conn
	acquire, release any // SHA-1 of the scripts
	admission        any // key of the admission record, an argument of the library's scripts; nil for the floor's scripts
	ballot           atomic.Int64
	wg               sync.WaitGroup
}

// stamp is the beginning of the admission record that the library's scripts expect on each master.
var stamp = scripts.StampOf(scripts.Record{Stamp: "0000000000000001"}.String())

// Dial connects to the masters and loads the scripts. The keys of the locks begin with prefix and have the TTL ttl.
// If Dial returns an error, it has closed all connections.
func Dial(ctx context.Context, urls []string, prefix string, ttl time.Duration) (*Floor, error) {
	return dial(ctx, urls, prefix, ttl, acquire, release, nil)
}

// DialLibrary is like Dial, but uses the scripts of the library. So the masters do the same work as for the library,
// over the floor's connections.
func DialLibrary(ctx context.Context, urls []string, prefix string, ttl time.Duration) (*Floor, error) {
	return dial(ctx, urls, prefix, ttl, scripts.Acquire.Text, scripts.Release.Text, prefix+"admission")
}

func dial(
	ctx context.Context, urls []string, prefix string, ttl time.Duration, acquire, release string, admission any,
) (*Floor, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	f := &Floor{prefix: prefix, ttl: ttl, millis: ttl.Milliseconds(), id: id.String(), admission: admission}
	if admission != nil {
		f.millis = (ttl + scripts.FenceKept).Milliseconds()
	}
	for _, u := range urls {
		c, err := redis.DialURLContext(ctx, u)
		if err == nil {
			f.conns = append(f.conns, newConn(c))
			f.acquire, err = c.Do("SCRIPT", "LOAD", acquire)
		}
		if err == nil {
			f.release, err = c.Do("SCRIPT", "LOAD", release)
		}
		if err == nil && admission != nil {
			_, err = c.Do("SET", admission, stamp)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("floor: %w", err), f.closeConns())
		}
	}
	for _, c := range f.conns {
		f.wg.Go(c.readLoop)
		f.wg.Go(c.writeLoop)
	}
	return f, nil
}

// A Caller locks and unlocks names for one goroutine, which may hold one lock at a time.
type Caller struct {
	f       *Floor
	wake    chan bool
	key     any // key of the current or last lock
	channel any
	holder  any
}

// NewCaller returns a Caller for one goroutine.
func (f *Floor) NewCaller() *Caller { return &Caller{f: f, wake: make(chan bool, 1)} }

// Lock locks name. It returns ErrNoMajority if a majority has not granted the lock.
func (c *Caller) Lock(name string) error {
	f := c.f
	key := f.prefix + name
	c.key, c.channel, c.holder = key, key+":free", f.id+":"+strconv.FormatUint(f.seq.Add(1), 10)
	if f.admission != nil {
		first := f.nextBallot()
		ballot, lease := strconv.FormatInt(first, 10), scripts.LeaseText(1, first, first, first+f.ttl.Microseconds())
		return c.send([]any{f.acquire, 2, c.key, f.admission, stamp, c.holder, f.millis, ballot, ballot, lease})
	}
	return c.send([]any{f.acquire, 1, c.key, c.holder, f.millis})
}

// Unlock releases the lock that Lock acquired last. It returns ErrNoMajority if no majority has confirmed the release.
func (c *Caller) Unlock() error {
	if c.f.admission != nil {
		return c.send([]any{c.f.release, 1, c.key, c.holder})
	}
	return c.send([]any{c.f.release, 2, c.key, c.channel, c.holder})
}

// nextBallot returns the current time in microseconds, or the last ballot plus one if that is larger.
func (f *Floor) nextBallot() int64 {
	for {
		last := f.ballot.Load()
		if next := max(time.Now().UnixMicro(), last+1); f.ballot.CompareAndSwap(last, next) {
			return next
		}
	}
}

func (c *Caller) send(args []any) error {
	if !c.f.ask(args, newRound(len(c.f.conns)/2+1, len(c.f.conns), c.wake)) {
		return ErrNoMajority
	}
	return nil
}

// ask sends a script on every connection and waits until the round is decided. It reports whether a quorum has
// granted.
func (f *Floor) ask(args []any, r *round) bool {
	for _, c := range f.conns {
		c.enqueue(request{args, r})
	}
	return <-r.wake
}

// Close waits until every reachable master has replied to all requests, also to those of rounds that a majority has
// decided earlier. Then it closes the connections and waits for all goroutines. The caller must not call Close during
// other calls.
func (f *Floor) Close() error {
	n := len(f.conns)
	last := newRound(n, n, make(chan bool, 1))
	last.anyReply = true
	f.ask([]any{f.release, 1, f.prefix + "last", f.id}, last)
	err := f.closeConns()
	f.wg.Wait()
	return err
}

func (f *Floor) closeConns() (err error) {
	for _, c := range f.conns {
		close(c.queue)
		err = errors.Join(err, c.redis.Close())
	}
	return err
}

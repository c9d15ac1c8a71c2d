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
)

// The scripts. Each replies 1 where it did what was asked, and 0 where the name is somebody else's.
const (
	// KEYS: the lock. ARGV: the holder, the time to live in ms.
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

// ErrNoMajority is the error of a Lock or Unlock that a majority of the masters did not grant.
var ErrNoMajority = errors.New("floor: no majority")

// A Floor is a set of masters with one connection each. Its methods are safe for concurrent use.
type Floor struct {
	prefix           string
	millis           any // the time to live, boxed once
	id               string
	seq              atomic.Uint64
	conns            []*conn
	acquire, release any // the SHA-1 of the scripts
	wg               sync.WaitGroup
}

// Dial connects to the masters and loads the scripts. The keys of the locks begin with prefix and live for ttl. After
// an error no connection is left.
func Dial(ctx context.Context, urls []string, prefix string, ttl time.Duration) (*Floor, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	f := &Floor{prefix: prefix, millis: ttl.Milliseconds(), id: id.String()}
	for _, u := range urls {
		c, err := redis.DialURLContext(ctx, u)
		if err == nil {
			f.conns = append(f.conns, newConn(c))
			f.acquire, err = c.Do("SCRIPT", "LOAD", acquire)
		}
		if err == nil {
			f.release, err = c.Do("SCRIPT", "LOAD", release)
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

// A Caller is what one goroutine locks and unlocks with, one lock at a time.
type Caller struct {
	f       *Floor
	wake    chan bool
	key     any // of what is held, or was last
	channel any
	holder  any
}

// NewCaller returns a Caller for one goroutine.
func (f *Floor) NewCaller() *Caller { return &Caller{f: f, wake: make(chan bool, 1)} }

// Lock locks name, or returns ErrNoMajority.
func (c *Caller) Lock(name string) error {
	f := c.f
	key := f.prefix + name
	c.key, c.channel, c.holder = key, key+":free", f.id+":"+strconv.FormatUint(f.seq.Add(1), 10)
	return c.send([]any{f.acquire, 1, c.key, c.holder, f.millis})
}

// Unlock releases what Lock has locked, or returns ErrNoMajority.
func (c *Caller) Unlock() error {
	return c.send([]any{c.f.release, 2, c.key, c.channel, c.holder})
}

func (c *Caller) send(args []any) error {
	if !c.f.ask(args, newRound(len(c.f.conns)/2+1, len(c.f.conns), c.wake)) {
		return ErrNoMajority
	}
	return nil
}

// ask hands a script to every connection and waits until the round is decided.
func (f *Floor) ask(args []any, r *round) bool {
	for _, c := range f.conns {
		c.enqueue(request{args, r})
	}
	return <-r.wake
}

// Close waits until every master that is there has answered all that it was sent, the slow minority of the last rounds
// too. It ends the connections and joins every goroutine. Nobody may be in a call.
func (f *Floor) Close() error {
	n := len(f.conns)
	last := newRound(n, n, make(chan bool, 1))
	last.anyReply = true
	f.ask([]any{f.release, 2, f.prefix + "last", f.prefix + "last", f.id}, last)
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

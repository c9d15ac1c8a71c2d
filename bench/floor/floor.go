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

// The scripts return 1 on success, and 0 if the name is locked or the caller does not hold it.
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

// ErrNoMajority is returned by calls that a majority of the masters has not executed successfully.
var ErrNoMajority = errors.New("floor: no majority")

// A Floor is a set of masters with one connection each. Its methods are safe for concurrent use.
type Floor struct {
	prefix           string
	millis           any // the TTL in ms, boxed once
	id               string
	seq              atomic.Uint64
	conns            []*conn
	acquire, release any // SHA-1 of the scripts
	loops            sync.WaitGroup
}

// Dial connects to the masters and loads the scripts. The keys of the locks begin with prefix and have the TTL ttl. If
// Dial returns an error, it has closed all connections.
func Dial(ctx context.Context, urls []string, prefix string, ttl time.Duration) (*Floor, error) {
	f := &Floor{prefix: prefix, millis: ttl.Milliseconds(), id: uuid.NewString()}
	for _, u := range urls {
		c, err := redis.DialURLContext(ctx, u)
		if err == nil {
			f.conns = append(f.conns, &conn{c, make(chan *round, backlog), make(chan *round, backlog)})
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
		f.loops.Go(c.read)
		f.loops.Go(c.write)
	}
	return f, nil
}

// A Lock is a name that is held. It may be used by one goroutine at a time.
type Lock struct {
	f           *Floor
	key, holder string
	decided     chan bool
}

// Lock locks name. It returns ErrNoMajority if a majority has not granted the lock.
func (f *Floor) Lock(name string) (*Lock, error) {
	l := &Lock{f, f.prefix + name, f.id + ":" + strconv.FormatUint(f.seq.Add(1), 10), make(chan bool, 1)}
	return l, l.send(f.acquire, 1, l.key, l.holder, f.millis)
}

// Unlock releases the lock. It ignores its context, and returns ErrNoMajority if no majority has confirmed the release.
func (l *Lock) Unlock(context.Context) error {
	return l.send(l.f.release, 2, l.key, l.key+":free", l.holder)
}

// send sends a script to all masters, and waits until the round is decided.
func (l *Lock) send(args ...any) error {
	r := &round{args: args, spare: int32(len(l.f.conns)-1) / 2, decided: l.decided}
	r.quorum = int32(len(l.f.conns)) - r.spare
	for _, c := range l.f.conns {
		select {
		case c.queue <- r:
		default:
			r.vote(false)
		}
	}
	if !<-l.decided {
		return ErrNoMajority
	}
	return nil
}

// Close waits for the replies to all requests, also to those of rounds that a majority has decided earlier, and closes
// the connections. The caller must not call Close during other calls.
func (f *Floor) Close() error {
	for _, c := range f.conns {
		close(c.queue)
	}
	f.loops.Wait()
	return f.closeConns()
}

func (f *Floor) closeConns() (err error) {
	for _, c := range f.conns {
		err = errors.Join(err, c.redis.Close())
	}
	return err
}

// A round is one script sent to all masters. It sends one value on decided: true when a quorum has granted, or false
// when more than spare masters have not.
type round struct {
	args             []any
	granted, refused atomic.Int32
	quorum, spare    int32
	decided          chan bool
}

func (r *round) vote(granted bool) {
	if granted {
		if r.granted.Add(1) == r.quorum {
			r.decided <- true
		}
	} else if r.refused.Add(1) == r.spare+1 {
		r.decided <- false
	}
}

// A conn is the connection to one master.
type conn struct {
	redis  redis.Conn
	queue  chan *round // for the writer; closed by Close
	flight chan *round // sent, or about to be sent, for the reader; closed by the writer
}

// backlog is the maximum number of rounds that a connection queues, for example for a hung master.
const backlog = 1 << 16

// write sends all queued rounds with one flush. It ignores errors, because they make Receive in read fail.
func (c *conn) write() {
	defer close(c.flight)
	for r := range c.queue {
		for more := true; more; {
			c.flight <- r
			_ = c.redis.Send("EVALSHA", r.args...)
			select {
			case r, more = <-c.queue:
			default:
				more = false
			}
		}
		_ = c.redis.Flush()
	}
}

// read passes the replies to their rounds, in order.
func (c *conn) read() {
	for r := range c.flight {
		reply, err := c.redis.Receive()
		r.vote(err == nil && reply == int64(1))
	}
}

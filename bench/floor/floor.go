package floor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Form says who writes to the connections.
type Form string

// The forms; see the package documentation.
const (
	Direct Form = "direct"
	Queued Form = "queued"
)

// What the library uses by default.
const (
	guardTime = 30 * time.Second
	barTTL    = time.Hour
)

// A Floor is a set of masters with one connection each. Its methods are safe for concurrent use, but two callers never
// lock the same name at a time: a name that is held is a panic.
type Floor struct {
	form   Form
	fleet  scripts.Fleet
	prefix scripts.Prefix
	conns  []*conn
	quorum uint32
	id     string
	seq    atomic.Int64
	offset int64 // the masters' time less this machine's, in us
	ttl    time.Duration
	fail   func(error)
	wg     sync.WaitGroup
}

// A Config says what a floor is to be. Every field but the last two must be set.
type Config struct {
	Form   Form
	Prefix string // of its keys
	TTL    time.Duration
	// Quorum is how many grants it waits for, by default a majority. 3 over four masters is what five of which one is
	// away come to.
	Quorum int
	// Fail is called where the floor cannot go on, from any of its goroutines and more than once, and never returns. By
	// default it panics.
	Fail func(error)
}

// Dial connects to the masters and admits each at once: they must be known to be empty under the prefix. It ends with
// ctx. After an error no connection is left.
func Dial(ctx context.Context, urls []string, cfg Config) (*Floor, error) {
	if cfg.Quorum == 0 {
		cfg.Quorum = len(urls)/2 + 1
	}
	if cfg.Fail == nil {
		cfg.Fail = func(err error) { panic(err) }
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	p := scripts.Prefix(cfg.Prefix)
	f := &Floor{
		form: cfg.Form, prefix: p, fleet: scripts.NewFleet(p, guardTime/2, barTTL, 0), quorum: uint32(cfg.Quorum),
		id: hex.EncodeToString(random) + "----:", ttl: cfg.TTL, fail: cfg.Fail,
	}
	var offset int64
	for _, u := range urls {
		c, t, err := f.connect(ctx, u)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("floor: %w", err), f.closeConns())
		}
		f.conns = append(f.conns, c)
		offset += (t - time.Now().UnixMicro()) / int64(len(urls))
	}
	f.offset = offset
	for _, c := range f.conns {
		f.wg.Go(c.readLoop)
		if cfg.Form == Queued {
			f.wg.Go(c.writeLoop)
		}
	}
	return f, nil
}

// connect dials one master, loads the scripts, and admits it. It returns the master's time in us as well.
func (f *Floor) connect(ctx context.Context, url string) (*conn, int64, error) {
	rc, err := redis.DialURLContext(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	for _, s := range scripts.All {
		if _, err := rc.Do("SCRIPT", "LOAD", s.Text); err != nil {
			return nil, 0, errors.Join(err, rc.Close())
		}
	}
	admit := func(r scripts.AdmitRequest) (scripts.Admission, error) {
		reply, err := rc.Do("EVALSHA", f.fleet.AdmitCall(r).Args...)
		if err != nil {
			return scripts.Admission{}, err
		}
		return scripts.DecodeAdmission(reply)
	}
	a, err := admit(scripts.AdmitRequest{Step: scripts.AdmitRead})
	if err == nil {
		a, err = admit(scripts.AdmitRequest{
			Step: scripts.AdmitNow, Identity: a.Identity, Seen: a.Marker, Median: a.Time, Guard: guardTime,
		})
	}
	if err == nil && a.Result != scripts.AdmitDone {
		err = fmt.Errorf("the master is not admitted: result %d", a.Result)
	}
	if err != nil {
		return nil, 0, errors.Join(err, rc.Close())
	}
	return newConn(rc, a.Marker, f.fail), a.Time, nil
}

// Close waits until every master has answered to all that it was sent, the slow minority of the last rounds too, ends
// the connections and joins every goroutine. Nobody may be in a call.
func (f *Floor) Close() error {
	last := &round{f: f, quorum: uint32(len(f.conns)), last: true, wake: make(chan struct{}, 1)}
	f.send(f.fleet.ReleaseCall(scripts.NewHold(f.prefix.Keys("last"), f.id+"0", ""), 1, false), last)
	err := f.closeConns()
	f.wg.Wait()
	return err
}

func (f *Floor) closeConns() error {
	var errs []error
	for _, c := range f.conns {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		close(c.done)
		errs = append(errs, c.redis.Close())
	}
	return errors.Join(errs...)
}

// A Caller is what one goroutine locks and unlocks with.
type Caller struct {
	f      *Floor
	wake   chan struct{}
	ballot int64
}

// NewCaller returns a Caller for one goroutine.
func (f *Floor) NewCaller() *Caller { return &Caller{f: f, wake: make(chan struct{}, 1)} }

// Pair locks name and unlocks it. Both end with the word of a majority.
func (c *Caller) Pair(name string) {
	f := c.f
	c.ballot = max(time.Now().UnixMicro()+f.offset, c.ballot+1)
	hold := scripts.NewHold(f.prefix.Keys(name), f.id+strconv.FormatInt(f.seq.Add(1), 10), "")
	c.send(f.fleet.AcquireCall(hold, scripts.ModeAcquire, f.ttl, c.ballot, c.ballot, 1))
	c.send(f.fleet.ReleaseCall(hold, c.ballot, false))
}

func (c *Caller) send(call *scripts.Call) {
	c.f.send(call, &round{f: c.f, quorum: c.f.quorum, wake: c.wake})
}

// send hands the call to every connection and waits until the round has its quorum.
func (f *Floor) send(call *scripts.Call, r *round) {
	if f.form == Direct {
		for _, to := range f.conns {
			to.sendDirect(call, r)
		}
	} else {
		for _, to := range f.conns {
			to.enqueue(call, r)
		}
	}
	<-r.wake
}

package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Form says who writes to the connections.
type Form string

// The forms; see the package documentation.
const (
	Direct Form = "direct"
	Queued Form = "queued"
)

// guardTime is what the library uses by default.
const guardTime = 30 * time.Second

// A Floor is a set of masters with one connection each. Its methods are safe for concurrent use, but two callers never
// lock the same name at a time: a name that is held is a panic.
type Floor struct {
	form    Form
	encoder *scripts.Encoder
	prefix  scripts.Prefix
	conns   []*conn
	quorum  uint32
	plain   bool
	millis  any // ttl, boxed once
	id      string
	seq     atomic.Uint64
	offset  int64 // the masters' time less this machine's, in us
	ttl     time.Duration
	fail    func(error)
	wg      sync.WaitGroup
}

// A Config says what a floor is to be. Every field but the last two must be set.
type Config struct {
	Form   Form
	Prefix string // of its keys
	TTL    time.Duration
	// Quorum is how many grants it waits for, by default a majority. 3 over four masters is what five of which one is
	// away come to.
	Quorum int
	// Plain replaces the two scripts by SET NX PX, and by the script that deletes a key where the value is one's own:
	// the least that the algorithm of the Redis documentation sends.
	Plain bool
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
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	p := scripts.Prefix(cfg.Prefix)
	f := &Floor{
		form: cfg.Form, prefix: p, encoder: scripts.NewEncoder(p, 0), quorum: uint32(cfg.Quorum), id: id.String(),
		ttl: cfg.TTL, fail: cfg.Fail, plain: cfg.Plain, millis: scripts.Millis(cfg.TTL),
	}
	var offset int64
	for _, u := range urls {
		c, t, err := f.connect(ctx, u, len(urls))
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

// connect dials one of n masters, loads the scripts, and admits it. It returns the master's time in us as well.
func (f *Floor) connect(ctx context.Context, url string, n int) (*conn, int64, error) {
	rc, err := redis.DialURLContext(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	var texts []string
	if f.plain {
		texts = append(texts, plainRelease)
	}
	for _, s := range scripts.All {
		texts = append(texts, s.Text)
	}
	for _, text := range texts {
		if _, err := rc.Do("SCRIPT", "LOAD", text); err != nil {
			return nil, 0, errors.Join(err, rc.Close())
		}
	}
	admit := func(r scripts.AdmitRequest) (scripts.Admission, error) {
		reply, err := rc.Do("EVALSHA", f.encoder.Admit(r).Args...)
		if err != nil {
			return scripts.Admission{}, err
		}
		return scripts.DecodeAdmission(reply)
	}
	a, err := admit(scripts.AdmitRequest{Step: scripts.AdmitRead})
	if err == nil {
		a, err = admit(scripts.AdmitRequest{
			Step: scripts.AdmitNow, Identity: a.Identity, Seen: a.Record, Median: a.Time,
			Record: scripts.Record{Identity: a.Identity, N: n, Longest: guardTime, Quarantine: guardTime},
		})
	}
	if err == nil && a.Result != scripts.AdmitDone {
		err = fmt.Errorf("the master is not admitted: result %d", a.Result)
	}
	if err != nil {
		return nil, 0, errors.Join(err, rc.Close())
	}
	return newConn(rc, a.Record, f.fail), a.Time, nil
}

// Close waits until every master has answered to all that it was sent, the slow minority of the last rounds too, ends
// the connections and joins every goroutine. Nobody may be in a call.
func (f *Floor) Close() error {
	last := &round{f: f, quorum: uint32(len(f.conns)), last: true, wake: make(chan struct{}, 1)}
	keys := f.prefix.Keys("last")
	f.send(callOf(f.encoder.Release(&keys, scripts.Ending{Grants: []string{f.grant()}})), last)
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

// grant makes the id of a grant, as the library does.
func (f *Floor) grant() string {
	return scripts.GrantID(f.id, f.seq.Add(1), "floor")
}

// send hands the command to every connection and waits until the round has its quorum.
func (f *Floor) send(cmd command, r *round) {
	if f.form == Direct {
		for _, to := range f.conns {
			to.sendDirect(cmd, r)
		}
	} else {
		for _, to := range f.conns {
			to.enqueue(cmd, r)
		}
	}
	<-r.wake
}

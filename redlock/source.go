package redlock

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// A ConfigSource tells the states of a fleet's configuration as they come: each call returns the next one, and blocks until
// there is one that differs from what it returned last. It is called by one goroutine, and is of one Locker: another has a
// source of its own. An error other than that of ctx is told to [Trace.Changed], and it is called again after a second.
type ConfigSource func(ctx context.Context) (Set, error)

// sourceRetry is the pause after a source, or a change, has failed.
const sourceRetry = time.Second

// WithConfigSource has the Locker follow the states that a source tells, as [Locker.ChangeMasters] does, until it is
// closed. One that cannot be followed yet is tried again every second, or left for the next that comes; what cannot be
// right is left out. All that is told to [Trace.Changed]. The Locker begins with [WithSet], or with the pool's masters at
// epoch 0.
func WithConfigSource(next ConfigSource) Option {
	return lockerOption(func(c *config) { c.source = next })
}

// FileSource reads the state from a file with a [Set] in JSON, and looks at it again every so often. It is told when the
// text changes and is a Set: a file that is gone, or half written, is an error once, and the state stays. Replace it as a
// whole (write another, and rename it). every is at least 10 ms; a second or a few are usual.
func FileSource(path string, every time.Duration) ConfigSource {
	every = max(every, 10*time.Millisecond)
	var last []byte
	failed := ""
	return func(ctx context.Context) (Set, error) {
		for first := true; ; first = false {
			if !first {
				if err := rest(ctx, every); err != nil {
					return Set{}, err
				}
			}
			text, err := os.ReadFile(path)
			if err == nil {
				if bytes.Equal(text, last) {
					continue
				}
				var s Set
				if s, err = ParseSet(text); err == nil {
					last, failed = text, ""
					return s, nil
				}
			}
			if failed != err.Error() {
				failed = err.Error()
				return Set{}, err
			}
		}
	}
}

// ChannelSource takes the states from a channel. One that is closed tells no more.
func ChannelSource(c <-chan Set) ConfigSource {
	return func(ctx context.Context) (Set, error) {
		for {
			select {
			case s, ok := <-c:
				if ok {
					return s, nil
				}
				c = nil
			case <-ctx.Done():
				return Set{}, ctx.Err()
			}
		}
	}
}

// rest waits for d, or fails with the error of ctx.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An order is the last state that a source has told, and the change to it.
type order struct {
	mu     sync.Mutex
	set    *Set               // guarded by mu; nil: it was taken
	cancel context.CancelFunc // guarded by mu: ends the change under way
	news   chan struct{}      // cap 1
}

// obey follows a source until the Locker closes.
func (l *Locker) obey(source ConfigSource) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := &order{news: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { l.read(ctx, source, o) })
	reading.Go(func() {
		select {
		case <-l.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		select {
		case <-o.news:
			l.carryOut(ctx, o)
		case <-ctx.Done():
			return
		}
	}
}

// read takes what the source tells. What is new ends the change to what was told before.
func (l *Locker) read(ctx context.Context, source ConfigSource, o *order) {
	for ctx.Err() == nil {
		s, err := source(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			l.traceChanged(l.Set(), err)
			_ = rest(ctx, sourceRetry)
			continue
		}
		o.mu.Lock()
		o.set = &s
		if o.cancel != nil {
			o.cancel()
		}
		o.mu.Unlock()
		select {
		case o.news <- struct{}{}:
		default:
		}
	}
}

// carryOut follows the last state that was told, until that is done, it cannot be right, or there is a newer one.
func (l *Locker) carryOut(ctx context.Context, o *order) {
	o.mu.Lock()
	s := o.set
	o.set = nil
	ctx, cancel := context.WithCancel(ctx)
	o.cancel = cancel
	o.mu.Unlock()
	defer cancel()
	if s == nil {
		return
	}
	told := ""
	for {
		err := l.changeMasters(ctx, *s)
		if ctx.Err() == nil && (err == nil || told != err.Error()) {
			l.traceChanged(*s, err)
		}
		if err == nil || errors.Is(err, ErrInvalidOption) || errors.Is(err, ErrClosed) || rest(ctx, sourceRetry) != nil {
			return
		}
		told = err.Error()
	}
}

func (l *Locker) traceChanged(s Set, err error) {
	if t := l.cfg.trace; t != nil && t.Changed != nil {
		t.Changed(ChangeInfo{Set: s, Err: err})
	}
}

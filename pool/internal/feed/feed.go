package feed

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/pool/internal/pipe"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A Source is one master, and how its connections are made and kept.
type Source struct {
	Target *wire.Target
	Owner  pipe.Owner
	Redial wire.Pauses
}

// idle is how long a connection is kept without listeners.
const idle = 10 * time.Second

// A feed is what one pool hears from one master.
type feed struct {
	hub  *Hub
	ctx  context.Context // the master's life
	src  Source
	wake chan struct{} // to await

	// Guarded by hub.mu.
	pipe   *pipe.Pipe      // nil while there is no connection
	legs   map[string]*leg // its channels; those that are off are not there
	unused *time.Timer     // ends it unless there are listeners
	err    error           // why the last one ended, or was not made, until the next has answered a SUBSCRIBE
}

// changedLocked is told that listeners of a channel have come or gone.
func (f *feed) changedLocked(channel string) {
	if f.pipe == nil {
		select {
		case f.wake <- struct{}{}:
		default: // it has been told already
		}
		return
	}
	f.orderLocked(channel)
	if len(f.hub.topics) == 0 {
		f.unused.Reset(idle)
	}
}

// run connects and serves while there are listeners, until the master's life ends.
func (f *feed) run() {
	pauses := f.src.Redial
	for f.await() {
		// INFO is not asked for: whoever gets a message asks all masters before it believes it.
		c, op, err := f.src.Target.Connect(f.ctx, func(*wire.Conn) (string, error) { return "", nil })
		if err != nil {
			f.hub.mu.Lock()
			f.err = f.src.Owner.ErrorFunc(op, err, false)
			f.hub.mu.Unlock()
		} else {
			began := time.Now()
			unused := f.serve(c)
			if pauses.Served(time.Since(began)) || unused {
				continue
			}
		}
		pauses.Rest(f.ctx)
	}
}

// await waits until there is a listener. It reports false when the master's life ends.
func (f *feed) await() bool {
	for !f.hub.wanted() {
		select {
		case <-f.wake:
		case <-f.ctx.Done():
			return false
		}
	}
	return f.ctx.Err() == nil
}

// errUnused ends a connection that nobody needs.
var errUnused = errors.New("pool: no subscription")

// serve is the life of one connection. It reports whether that was closed because nobody needed it. What is outstanding
// then gets no answer: the next connection begins anew.
func (f *feed) serve(c *wire.Conn) (unused bool) {
	h, owner := f.hub, f.src.Owner
	owner.BeatFunc, owner.PushFunc = f.beat, f.push
	p := pipe.New(c, false, owner)
	h.mu.Lock()
	f.pipe, f.legs = p, make(map[string]*leg)
	f.unused = time.AfterFunc(idle, func() {
		if !h.wanted() {
			p.Kill("unused", errUnused)
		}
	})
	for channel := range h.topics {
		f.orderLocked(channel)
	}
	h.mu.Unlock()

	_, err := p.Run(f.ctx, 0)

	h.mu.Lock()
	defer h.mu.Unlock()
	f.unused.Stop()
	f.pipe, f.legs, f.err = nil, nil, nil
	if errors.Is(err, errUnused) {
		return true
	}
	f.err = owner.ErrorFunc("subscription", err, false)
	return false
}

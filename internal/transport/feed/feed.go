package feed

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Source is one master, and how connections to it are made and kept.
type Source struct {
	Target *wire.Target
	Owner  pipe.Owner
	Redial wire.Pauses
	// ServerFunc, if set, returns the run id of the server to which the calls go, or "" while there is none. A script
	// that publishes a message counts only the receivers on its own server, so subscriptions must use the same server as
	// the calls.
	ServerFunc func() string
	// AskFunc, set with ServerFunc, reads the run id of the server of a connection, or returns "" if the server refuses.
	// It is needed because a node or a sentinel with outdated data may have named a server other than that of the calls.
	AskFunc func(c *wire.Conn) (server, op string, err error)
	// IntroductionFunc, if set, returns commands that are sent first. Their replies do not matter.
	IntroductionFunc func() [][]string
}

// idle is how long a connection is kept without listeners.
const idle = 10 * time.Second

// A feed is the subscription connection of one pool to one master.
type feed struct {
	hub  *Hub
	ctx  context.Context // ends with the master
	src  Source
	wake chan struct{} // wakes await

	server string // run id of the server of this connection; if not known, the first result of ServerFunc

	// Guarded by hub.mu.
	pipe   *pipe.Pipe      // nil while there is no connection
	legs   map[string]*leg // its channels, except those that are off
	unused *time.Timer     // ends the connection unless there are listeners
	err    error           // why the last connection ended, or failed; cleared by the next reply to SUBSCRIBE
}

// changedLocked updates the subscriptions after a listener was added to a channel or removed from it.
func (f *feed) changedLocked(channel string) {
	if f.pipe == nil {
		select {
		case f.wake <- struct{}{}:
		default: // await is already notified
		}
		return
	}
	f.orderLocked(channel)
	if len(f.hub.topics) == 0 {
		f.unused.Reset(idle)
	}
}

// run connects and serves while there are listeners, until the master's context ends.
func (f *feed) run() {
	pauses := f.src.Redial
	for f.await() {
		c, op, err := f.src.Target.Connect(f.ctx, f.greet)
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

// greet reads the run id of the server. It does not check whether the server is fit, because a client that receives a
// message queries all masters before it relies on the message.
func (f *feed) greet(c *wire.Conn) (op string, err error) {
	if f.src.ServerFunc != nil {
		f.server, op, err = f.src.AskFunc(c)
	}
	return op, err
}

// await waits for a listener. It returns false when the master's context ends.
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

// errUnused ends a connection that has no listeners.
var errUnused = errors.New("pool: no subscription")

// serve runs one connection until it ends. It reports whether the connection was closed because it had no listeners.
// Outstanding commands then get no reply, because the next connection sends all subscriptions again.
func (f *feed) serve(c *wire.Conn) (unused bool) {
	h, owner := f.hub, f.src.Owner
	owner.BeatFunc, owner.PushFunc = f.beat, f.push
	p := pipe.New(c, false, owner)
	if f.src.IntroductionFunc != nil {
		for _, words := range f.src.IntroductionFunc() {
			p.Queue(frame.Command("client", words...), func(any, error) {})
		}
	}
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

package feed

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A feed is what one pool hears from one master. Its goroutine exists only while it is needed: the first listener
// starts it, and it ends when there has been none for a while.
type feed struct {
	hub    *Hub
	ctx    context.Context // the master's life
	src    Source
	master int
	wake   chan struct{} // to awaitNeed

	// Guarded by hub.mu.
	running bool
	retired bool
	line    *line // nil while there is no connection
	err     error // why the last one ended, or was not made, until the next has answered a SUBSCRIBE
}

// legLocked is where a channel stands on the present connection, nil for nowhere.
func (f *feed) legLocked(channel string) *leg {
	if f.line == nil {
		return nil
	}
	return f.line.legs[channel]
}

// changedLocked is told that listeners have come or gone.
func (f *feed) changedLocked() {
	switch {
	case f.line != nil:
		nudge(f.line.wake)
	case f.running:
		nudge(f.wake)
	case !f.retired && len(f.hub.topics) > 0:
		f.running = true
		f.hub.start(f.run)
	}
}

// end closes the connection, where there is one, and has the goroutine look at whether it is needed.
func (f *feed) end(ln *line, reason error) {
	if ln != nil {
		ln.kill(reason)
	}
	nudge(f.wake)
}

// run connects and serves until there has been no listener for a while, or the master's life ends.
func (f *feed) run() {
	pauses := f.src.Redial
	for f.awaitNeed() {
		c, err := f.src.DialFunc(f.ctx)
		if err != nil {
			f.hub.mu.Lock()
			f.err = err
			f.hub.mu.Unlock()
		} else {
			began := time.Now()
			idle := f.serve(c)
			if pauses.Served(time.Since(began)) || idle {
				continue
			}
		}
		pauses.Rest(f.ctx)
	}
}

// awaitNeed waits until there is a listener. It reports false when there was none for long enough: the goroutine must
// end then, and the next listener starts another.
func (f *feed) awaitNeed() bool {
	h := f.hub
	for {
		h.mu.Lock()
		wanted := len(h.topics) > 0
		left := f.src.Idle - time.Since(h.idleSince)
		end := h.closed || f.retired || !wanted && left <= 0
		if end {
			f.running, f.err = false, nil
		}
		h.mu.Unlock()
		if end || wanted {
			return !end
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-f.wake:
		case <-f.ctx.Done():
		}
		timer.Stop()
	}
}

// errIdle ends a connection that nobody needs.
var errIdle = errors.New("pool: no subscription")

// serve is the life of one connection. It returns when all its goroutines have ended, and reports whether it was closed
// because nobody needed it.
func (f *feed) serve(c *wire.Conn) (idle bool) {
	h := f.hub
	ln := newLine(f, c)
	h.mu.Lock()
	if h.closed || f.retired {
		h.mu.Unlock()
		c.Close()
		return false
	}
	f.line = ln
	nudge(ln.wake)
	h.mu.Unlock()

	ln.run()

	h.mu.Lock()
	defer h.mu.Unlock()
	f.line, f.err = nil, nil
	if errors.Is(ln.reason, errIdle) {
		return true
	}
	f.err = f.src.ExplainFunc(ln.reason)
	return false
}

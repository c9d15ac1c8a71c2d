package sim

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A guest is an additional client with one waiting call at a time. In runs of the kind lonely, the guest reaches only a
// minority of the masters, or only a minority lets it acquire locks; its calls have the highest priority, but never
// acquire a lock. In runs of the kind far, the guest is distant from the masters, but its calls must succeed.
type guest struct {
	c    *client
	call sync.WaitGroup
	stop context.CancelFunc
}

// startGuest starts the guest, if the kind of the run has one.
func (w *simulation) startGuest() error {
	if w.plan.kind != lonely && w.plan.kind != far {
		return nil
	}
	w.plan.guards = append(w.plan.guards, w.plan.guard)
	c, err := newClient(w, len(w.clients))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	denied := w.random.IntN(3) > 0
	for _, i := range w.plan.hidden {
		l := c.inOrder[i]
		if l.denied = denied; denied {
			w.note(c.index, i, "is refused every lock", "", 0)
			continue
		}
		l.upCut, l.downCut, l.refuse = true, true, true
		w.note(c.index, i, "is cut off forever", "", 0)
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &guest{c: c, stop: stop}
	if w.plan.kind == lonely {
		g.call.Go(func() { w.always(ctx, c.locker, 5) })
	} else {
		g.call.Go(func() { g.visit(newWorker(c, 0, ctx)) })
	}
	w.guest = g
	return nil
}

// visit acquires and releases a lock repeatedly, and reports calls that take too long.
func (g *guest) visit(k *worker) {
	w := g.c.w
	for k.sleep(k.upTo(50*time.Millisecond), nil) {
		asked := time.Now()
		lock, err := g.c.now().Lock(k.ctx, w.plan.names[0], redlock.WithTTL(w.plan.guard))
		if took := time.Since(asked); took > longestWait {
			w.problem("for a client with an additional round-trip time of %v a lock took %v, want at most %v: %v",
				2*w.plan.away, took, longestWait, err)
		}
		if err == nil {
			k.unlock(lock)
		}
	}
}

// endGuest ends the call of the guest, and adds the guest to the clients, which are closed at the end of the run.
func (w *simulation) endGuest() {
	if g := w.guest; g != nil {
		g.stop()
		g.call.Wait()
		w.clients = append(w.clients, g.c)
		w.guest = nil
	}
}

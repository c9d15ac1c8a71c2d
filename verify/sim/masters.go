package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// emptyAll restarts all masters together without their data.
func (w *simulation) emptyAll() {
	for _, s := range w.servers {
		w.note(-1, s.index, "restarts without its memory", "", 0)
		s.disconnect(nil)
		s.restart()
		clear(s.Loaded)
		s.State.Flush()
		s.forget()
	}
}

// backup gives masters another replication id, as when a replica attaches or a backlog is freed. The masters lose no
// data.
func (w *simulation) backup() {
	for i, s := range w.servers {
		if i == 0 && w.random.IntN(2) == 0 {
			continue
		}
		w.note(-1, s.index, "gets another replication id", "", 0)
		s.ReplID = s.another()
		if w.random.IntN(2) == 0 {
			s.Env.ReplID2, s.Env.Offset = "", 0
		}
	}
}

// cutApart partitions the minority plan.apart away from all clients.
func (w *simulation) cutApart() {
	for _, c := range w.clients {
		for _, i := range w.plan.apart {
			l := c.inOrder[i]
			l.upCut, l.downCut, l.refuse = w.plan.up, w.plan.down, true
			w.note(c.index, i, "is cut off forever", "", 0)
		}
	}
}

// joinAgain ends the lasting partitions. It runs after the checks that every client acquires locks without the
// minority.
func (w *simulation) joinAgain() {
	w.endGuest()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		for _, i := range slices.Concat(w.plan.apart, w.plan.hidden) {
			c.inOrder[i].open()
		}
	}
}

const (
	servings   = 5 // number of locks that each contender acquires
	longestUse = 5 * time.Millisecond

	// mostTrips is the maximum average number of round trips per contended lock. Without faults, the average is two or
	// three.
	mostTrips = 15
)

// checkServed reports calls that do not acquire a lock in time while a minority is partitioned away. All clients
// compete for the same name.
func (w *simulation) checkServed() {
	if w.plan.kind != lasting && w.plan.kind != lonely {
		return
	}
	w.mu.Lock()
	w.note(-1, -1, "from now on, every client must acquire locks in time", "", 0)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	contenders := w.contenders(ctx)
	if len(contenders) == 0 || !contenders[0].served() { // a handle that no client has imported may still reserve the name
		return
	}
	began := time.Now()
	together(contenders, func(c contender) {
		for n := 0; n < servings && c.served(); n++ {
		}
	})
	each := time.Since(began) / time.Duration(servings*len(contenders))
	if most := longestUse + mostTrips*(2*w.plan.latency+w.plan.jitter); each > most {
		w.problem("with a minority cut off, a lock took %v on average, want at most %v", each, most)
	}
	if w.plan.kind == lasting {
		w.checkFresh()
	}
}

// A contender is a worker with its own Locker.
type contender struct {
	*worker
	l *redlock.Locker
}

// contenders returns maxBusy contenders for each client.
func (w *simulation) contenders(ctx context.Context) (list []contender) {
	for _, c := range w.clients {
		for n := range maxBusy {
			l, err := c.begin(fmt.Sprintf("%c%d", 'A'+c.index, n), c.file)
			if err != nil {
				w.problem("client %d: %v", c.index, err)
				return nil
			}
			w.mu.Lock()
			c.old = append(c.old, l) // closed at the end of the run
			w.mu.Unlock()
			list = append(list, contender{newWorker(c, n, ctx), l})
		}
	}
	return list
}

// served acquires and releases a lock. It reports a call that fails or takes too long, and returns whether the call
// succeeded and the run has no violation.
func (c contender) served() bool {
	w := c.c.w
	asked := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, 2*longestWait)
	defer cancel()
	lock, err := c.l.Lock(ctx, w.plan.names[0], redlock.WithTTL(w.plan.guards[c.c.index]))
	if took := time.Since(asked); took > longestWait || err != nil {
		w.problem("client %d: with a minority cut off, a lock took %v, want at most %v: %v", c.c.index, took, longestWait,
			err)
	}
	if err != nil {
		return false
	}
	c.sleep(c.upTo(longestUse), nil)
	c.unlock(lock)
	return !w.bad()
}

// checkFresh starts a new client, and reports if the client's first lock is not soon on all masters that the client can
// reach.
func (w *simulation) checkFresh() {
	p := &w.plan
	p.guards = append(p.guards, p.guard)
	c, err := newClient(w, len(w.clients))
	if err != nil {
		w.problem("creation of a new client: %v", err)
		return
	}
	w.mu.Lock()
	w.clients = append(w.clients, c)
	for _, i := range p.apart {
		l := c.inOrder[i]
		l.upCut, l.downCut, l.refuse = p.up, p.down, true
	}
	w.note(c.index, -1, "starts", "", 0)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	k := newWorker(c, 0, ctx)
	lock, err := c.now().Lock(ctx, p.names[0], redlock.WithTTL(p.guard))
	if err != nil {
		w.problem("a new client cannot lock the name: %v", err)
		return
	}
	k.sleep(14*(p.latency+p.jitter)+2*p.unlike+20*time.Millisecond, nil)
	w.mu.Lock()
	on, of := 0, 0
	for _, s := range w.servers {
		if slices.Contains(p.apart, s.index) {
			continue
		}
		of++
		if id, _ := s.holder(lock.Name()); id != "" {
			on++
		}
	}
	w.mu.Unlock()
	if on < of {
		w.problem("%s: the first lock of a new client is on %d of the %d masters that the client reaches, want all",
			lock.Name(), on, of)
	}
	k.unlock(lock)
}

// checkGuardTime reports a call that waits too long because its TTL is above the max TTL of the deployment.
func (w *simulation) checkGuardTime() {
	c := w.clients[len(w.clients)-1]
	if !w.plan.long || c.index == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	asked := time.Now()
	_, lock, err := acquire(ctx, c.now(), w.plan.names[0], true, redlock.WithTTL(w.plan.guards[c.index]))
	if took := time.Since(asked); took > longestWait || err != nil && !errors.Is(err, redlock.ErrTTLTooLong) {
		w.problem("a call with a TTL above the max TTL of the deployment took %v, want a lock or ErrTTLTooLong within %v: %v",
			took, longestWait, err)
	}
	if err == nil {
		_ = lock.Unlock(ctx)
	}
}

// together runs f for all contenders concurrently, and waits for them.
func together(list []contender, f func(contender)) {
	var all sync.WaitGroup
	for _, c := range list {
		all.Go(func() { f(c) })
	}
	all.Wait()
}

package redlock

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// inboxIdle is for how long the inbox stays open after the last wait: the next wait is then in the queues at its first
// refusal, instead of after a subscription.
const inboxIdle = 10 * time.Second

// gapSpread is over how long the waiters of a Locker look again after a subscription was lost and made again.
const gapSpread = 100 * time.Millisecond

// An inbox is where the contenders of a Locker hear from the masters that it is their turn: one channel a Locker,
// subscribed to on every master while anybody waits. It implements pool.Listener. A message that is lost is a hint less: a
// waiter without them goes by the TTL and by polling. One that comes counts for what it says of itself: which hold, by which
// ballot, on a master that is admitted as what. It may come from anywhere, late, and more than once.
type inbox struct {
	l     *Locker
	since time.Time // pollTicks are counted from it

	mu      sync.Mutex
	sub     *pool.Subscription // nil while closed
	waiters map[uint64]*waiter
	number  uint64 // of the last waiter
	idle    *time.Timer
	shut    bool
}

func newInbox(l *Locker) *inbox {
	return &inbox{l: l, since: time.Now().Add(-spread(pollTick)), waiters: make(map[uint64]*waiter)}
}

// together shortens a pause of more than a pollTick so that it ends with one: of those who wait for many names several then
// ask at one time, and share what a write, a read and a wake-up cost.
func (b *inbox) together(pause time.Duration) time.Duration {
	return pause - (time.Since(b.since)+pause)%pollTick
}

// ready reports whether a quorum of the masters would be heard. The pool may have others, which come or go.
func (b *inbox) ready() bool {
	b.mu.Lock()
	sub := b.sub
	b.mu.Unlock()
	return sub != nil && b.l.set.Load().rule.has(sub.StandingOn())
}

// enter begins a wait, and opens the inbox where it is not.
func (b *inbox) enter(name string, keys scripts.Keys, cfg *lockConfig, called clock.Instant) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.number++
	w := &waiter{
		b: b, name: name, keys: keys, called: called, priority: cfg.priority, number: b.number, wake: make(chan struct{}, 1), linger: leastLinger,
	}
	b.waiters[w.number] = w
	if b.sub == nil && !b.shut {
		b.sub = b.l.pool.Subscribe(scripts.Prefix(b.l.cfg.prefix).Inbox(b.l.cfg.id), b)
	}
	return w
}

// date gives w its ticket, for the time of its call, and reports whether it has one: not before the masters' time is known, since a ticket of no
// time would be before all others.
func (b *inbox) date(w *waiter) bool {
	if w.ticket != nil {
		return true
	}
	if !b.l.set.Load().rule.has(b.l.ballots.reckon(w.called).known) {
		return false
	}
	at, _ := b.l.ballots.time(w.called, -1)
	b.mu.Lock()
	defer b.mu.Unlock()
	w.ticket = scripts.NewTicket(b.l.cfg.id, w.number, at, w.priority)
	return true
}

// leave ends a wait. The last one closes the inbox after a while.
func (b *inbox) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w.number)
	if len(b.waiters) > 0 || b.sub == nil {
		return
	}
	if b.shut {
		b.sub.Close()
		b.sub = nil
		return
	}
	if b.idle == nil {
		b.idle = time.AfterFunc(inboxIdle, b.expire)
	} else {
		b.idle.Reset(inboxIdle)
	}
}

// expire closes the inbox if nobody has waited lately.
func (b *inbox) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) == 0 && b.sub != nil {
		b.sub.Close()
		b.sub = nil
	}
}

// close ends the inbox; the Locker's calls are over. Those who have won leave the queues now.
func (b *inbox) close() {
	for _, w := range b.shutDown() {
		w.part()
	}
}

func (b *inbox) shutDown() []*waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	if b.idle != nil {
		b.idle.Stop()
	}
	if b.sub != nil && len(b.waiters) == 0 {
		b.sub.Close()
		b.sub = nil
	}
	return b.allLocked()
}

// allLocked lists the waiters in the order in which they came.
func (b *inbox) allLocked() []*waiter {
	return slices.SortedFunc(maps.Values(b.waiters), func(x, y *waiter) int { return cmp.Compare(x.number, y.number) })
}

// Message implements pool.Listener. What is reserved for somebody who waits no more goes to the next at once, and what was
// written of a hold that its waiter has given up. A hold that was written for somebody who is not here any more is let be: it
// was released when he left, on every master where he may have been queued; or he has won, and it is live.
func (b *inbox) Message(master int, _, payload string) {
	n, ok := scripts.Prefix(b.l.cfg.prefix).ParseNotice(payload)
	if !ok {
		return
	}
	b.mu.Lock()
	w := b.waiters[n.Number]
	ours := w != nil && w.ticket != nil && w.ticket.String() == n.Waiter
	b.mu.Unlock()
	if ours && w.notice(master, n) || !ours && n.Kind != scripts.Reserved {
		return
	}
	if n.Kind != scripts.Free {
		b.l.handBack(master, n)
	}
}

// Gap implements pool.Listener.
func (b *inbox) Gap(int) {
	b.mu.Lock()
	all := b.allLocked() // who waits longest looks first
	b.mu.Unlock()
	for _, w := range all {
		w.gap()
	}
}

// leaveQueue tells master i that a waiter waits no more.
func (l *Locker) leaveQueue(i int, keys scripts.Keys, waiter string) {
	snap := l.guard.snap.Load()
	_ = l.sendStamped(snap, i, snap.fleet.LeaveCall(keys, waiter), discard{}) // where it does not arrive, the waiter is dropped as nobody hears it
}

// handBack has master i hand on what a notice has given to a hold that is over.
func (l *Locker) handBack(i int, n scripts.Notice) {
	keys := scripts.Prefix(l.cfg.prefix).Keys(n.Name)
	if n.Kind == scripts.Reserved {
		l.leaveQueue(i, keys, n.Waiter)
		return
	}
	snap := l.guard.snap.Load()
	call := snap.fleet.ReleaseCall(scripts.NewHold(keys, n.Hold, ""), n.Ballot, false, scripts.Reserve)
	_ = l.sendStamped(snap, i, call, discard{})
}

// discard is for calls whose answer changes nothing.
type discard struct{}

// Reply implements pool.Receiver.
func (discard) Reply(int, any, error) {}

// spread draws a time below d.
func spread(d time.Duration) time.Duration { return time.Duration(jitter.Int64N(int64(d) + 1)) }

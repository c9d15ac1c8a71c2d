package redlock

import (
	"context"
	"math/bits"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/teeth"
)

// changeLook is how often a change of the masters that waits for holds looks at them.
const changeLook = 20 * time.Millisecond

// ChangeMasters has this Locker go by the next state of the fleet's configuration; held locks go on. The states come one
// after the other, and s is the one that follows, or the present one, which changes nothing. How a fleet is taken through
// them, and what makes it safe, is in the package documentation.
//
// From a set to it together with the next, it waits until a majority of the next masters votes: new ones are in quarantine
// first. From then on every lock that is taken or extended needs a majority of each, and locks that are held are given to
// the next masters, within a quarter of their TTL. From both to the next set, it waits until each lock held here that is
// extended is on a majority of the next masters. Then the old ones are told of releases only, and after the guard time
// their connections are closed, unless another Locker of the pool uses them.
//
// Errors, with nothing changed: ErrInvalidOption where s cannot be right, before anything is sent: an epoch that goes back
// or leaves a state out, no masters, the same one twice, old masters that are not the present ones, a Locker without the
// restart guard; ErrIncomplete where s is the next set alone and the masters do not say that it may act so
// ([Locker.FinishChange]); ErrNoQuorum with that of ctx where too few of the next masters vote; that of ctx; ErrClosed. A
// Locker that has slept while the fleet went on takes any later state; until then its locks were refused.
//
// It is safe for concurrent use; changes wait for each other.
func (l *Locker) ChangeMasters(ctx context.Context, s Set) error {
	err := l.changeMasters(ctx, s)
	l.traceChanged(s, err)
	return err
}

func (l *Locker) changeMasters(ctx context.Context, s Set) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	select {
	case l.changeTurn <- struct{}{}:
		defer func() { <-l.changeTurn }()
	case <-ctx.Done():
		return l.notChanged(contextError(ctx))
	case <-l.closing:
		return ErrClosed
	}
	if err := s.check(); err != nil {
		return err
	}
	now := l.set.Load()
	if s.Epoch > now.epoch && (s.Epoch > now.epoch+1 || now.rule.joint()) {
		if err := l.lookAgain(ctx); err != nil { // one that is idle does not hear how far the fleet is
			return err
		}
	}
	if err := l.mayFollow(now, &s); err != nil {
		return err
	}
	next, err := s.join(l.pool)
	if err != nil {
		return err
	}
	if next.same(now) {
		return nil
	}
	if err := l.follows(now, next); err != nil {
		return err
	}
	l.retain(next.rule.all())
	if !now.rule.joint() || !next.within(now) {
		if err := l.prepare(ctx, now, next); err != nil {
			return err
		}
	} else if err := l.carry(ctx, now, next); err != nil {
		return err
	}
	l.use(next)
	if left := now.rule.all() &^ next.rule.all(); left != 0 {
		l.guard.tell(note{leave: left})
		l.retained &^= left // the guard tells the pool
	}
	l.hurry(next)
	l.inbox.Gap(0) // whoever waits looks again, by the new rule
	return nil
}

// mayFollow checks the epoch of s alone, before the pool hears of its masters.
func (l *Locker) mayFollow(now *members, s *Set) error {
	switch {
	case s.Epoch < now.epoch:
		return invalid("the set of masters has epoch %d already, and %d goes back", now.epoch, s.Epoch)
	case s.Epoch > now.epoch && l.cfg.guard == 0:
		return errNoMarkers
	case s.Epoch > now.epoch+1 && !l.late(now):
		return invalid("from epoch %d to %d, states are left out: a set of masters follows another by way of both together", now.epoch, s.Epoch)
	}
	return nil
}

// late reports whether the fleet has gone on without this Locker, so that nothing is granted to it any more.
func (l *Locker) late(now *members) bool {
	s, ahead := l.guard.snap.Load(), uint64(0)
	for _, i := range now.order {
		if s.masters[i].change.Epoch > now.epoch {
			ahead |= bit(i)
		}
	}
	return majority(ahead, now.rule.first)
}

// follows checks that next is what comes after now.
func (l *Locker) follows(now, next *members) error {
	switch {
	case next.epoch == now.epoch:
		return invalid("the state of epoch %d has other masters here: %v", now.epoch, l.setOf(now))
	case next.epoch > now.epoch+1: // it is late
		return nil
	case now.rule.joint() && next.rule.first != now.rule.second:
		return invalid("epoch %d is to have the next masters of epoch %d, and names others", next.epoch, now.epoch)
	case !now.rule.joint() && next.rule.first != now.rule.first:
		return invalid("epoch %d is to have the masters of epoch %d as the old ones, and names others", next.epoch, now.epoch)
	case now.rule.joint() && !majority(l.alone(next), next.rule.first) && !teeth.NoTogether:
		return l.incomplete(next)
	}
	return nil
}

// alone is the masters of a set that say that it may act alone.
func (l *Locker) alone(next *members) (set uint64) {
	s := l.guard.snap.Load()
	for rest := next.rule.first; rest != 0; {
		i := popFirst(&rest)
		if i < len(s.masters) && s.masters[i].change.Alone >= next.epoch {
			set |= bit(i)
		}
	}
	return set
}

func (l *Locker) incomplete(next *members) error {
	return &LockError{
		Op: "change", Name: l.cfg.prefix, Decision: ErrIncomplete, Granted: bits.OnesCount64(l.alone(next)), Quorum: next.rule.least(), N: next.n(),
	}
}

// prepare has the masters of next admitted, and waits until a majority of each of its sets votes.
func (l *Locker) prepare(ctx context.Context, now, next *members) error {
	l.use(now.following(next))
	for {
		moved := l.guard.changes()
		s, able := l.guard.snap.Load(), uint64(0)
		for rest := next.rule.all(); rest != 0; {
			if i := popFirst(&rest); i < len(s.masters) && s.masters[i].lets(next, i) {
				able |= bit(i)
			}
		}
		// The old ones need not vote now: a quarantine there is no reason to wait. One who is late has none that do.
		if set := next.rule.second; set == 0 || majority(able, set) || teeth.NoTogether {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			err := l.notChanged(contextError(ctx))
			err.Decision, err.Granted, err.Quorum, err.N = ErrNoQuorum, bits.OnesCount64(able&next.rule.second), quorumOf(bits.OnesCount64(next.rule.second)), bits.OnesCount64(next.rule.second)
			err.Masters = l.statesIn(s, next)
			return err
		case <-l.closing:
			return ErrClosed
		}
	}
}

// lets reports whether master i would vote for one who goes by m: the marker may be ahead of what this Locker goes by.
func (st *masterState) lets(m *members, i int) bool {
	return st.admitted && st.change.Epoch <= m.epoch && st.change.Alone >= m.needs(i)
}

// carry waits until every live hold that is extended is on a majority of the next set: those that were taken before both
// sets were needed are given to the next masters by their extension.
func (l *Locker) carry(ctx context.Context, now, next *members) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return l.notChanged(contextError(ctx))
		case <-l.closing:
			return ErrClosed
		}
		behind := false
		for _, h := range l.schedule.all() {
			h.mu.Lock()
			behind = behind || h.cause == nil && h.extend && h.of.rule != now.rule && !next.within(h.of)
			h.mu.Unlock()
		}
		if !behind || teeth.NoTogether {
			return nil
		}
		timer.Reset(changeLook)
	}
}

func (l *Locker) notChanged(cause error) *LockError {
	return &LockError{Op: "change", Name: l.cfg.prefix, Cause: cause}
}

// use has the guard see to the masters of m. From its return on every round that begins goes by it.
func (l *Locker) use(m *members) {
	l.ballots.change(m.rule.all()|m.follow.all(), m.slots)
	l.set.Store(m)
	heard := make(chan struct{})
	l.guard.tell(note{heard: heard})
	select {
	case <-heard:
	case <-l.closing:
	}
}

// hurry has the holds that do not go by m extended soon, spread over a quarter of their TTL.
func (l *Locker) hurry(m *members) {
	if !m.rule.joint() {
		return
	}
	now := l.now()
	for _, h := range l.schedule.all() {
		h.mu.Lock()
		if h.cause == nil && h.extend && h.of != m && h.failed == 0 && !h.running {
			h.failed, h.retryAt = 1, now.Add(spread(h.ttl/4))
			l.schedule.fix(h, h.nextLocked())
		}
		h.mu.Unlock()
	}
}

// endRule is what the end of a hold, or a change of its depth, is confirmed by: the rule that it was won by, or that of
// the Locker where it goes by one of its sets since.
func (h *hold) endRule(now *members) rule {
	if h.of == nil || now.within(h.of) {
		return now.rule
	}
	return h.of.rule
}

// A leaver is masters that are no longer of the set, and until when they are told of releases.
type leaver struct {
	set uint64
	at  clock.Instant
}

// longestTTL is for how long a lock may live on the masters.
func (l *Locker) longestTTL() time.Duration {
	longest := time.Duration(0)
	for _, m := range l.guard.snap.Load().masters {
		longest = max(longest, m.guard)
	}
	if longest == 0 {
		return l.cfg.guard
	}
	return longest
}

// dismiss gives back to the pool the masters whose time is over, and returns when the next are due; 0 for none.
func (g *guard) dismiss(now clock.Instant) time.Duration {
	for len(g.gone) > 0 {
		first := &g.gone[0]
		if left := first.at.Sub(now); left > 0 {
			return left
		}
		g.l.giveBack(first.set)
		g.gone = g.gone[1:]
	}
	return 0
}

// giveBack tells the pool that masters are not used here any more.
func (l *Locker) giveBack(set uint64) {
	for set != 0 {
		l.pool.Release(popFirst(&set), true)
	}
}

package redlock

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/scripts"
)

// completeAfter is for how many guard times a majority of the old masters must have had the epoch: one for the locks that
// the old set alone has granted before, and one for their tokens. A ballot is at most half of the guard time ahead of a
// master's clock, or behind, and clocks of masters may be as much apart; so after two guard times every ballot that a new
// master takes is above all that the old ones have taken, although no master has to have seen both.
const completeAfter = 2

// A Change is how far the fleet is on the way from one set of masters to the next, as its masters tell.
type Change struct {
	// Set is the state that this Locker goes by.
	Set Set
	// Raised is how many of Set.Masters have the epoch of Set in their markers, or a later one: those refuse programs that
	// go by an earlier state. RaisedAll tells whether they are a majority.
	Raised    int
	RaisedAll bool
	// Complete tells whether a majority of Set.Masters has had it for two guard times: then nothing is held by the old
	// masters alone, and nothing will be. Left is for how long yet, where they are a majority.
	Complete bool
	Left     time.Duration
	// Open is how many of Set.Next (of Set.Masters, where the epoch is even) say that they may act alone; OpenAll tells
	// whether they are a majority.
	Open    int
	OpenAll bool
	// Masters are the states of all of them.
	Masters []MasterInfo
}

// Change reads the markers of all masters that can be reached, and tells how far the change is that leads away from the
// old masters of this Locker's state, or, where the epoch is even, has led to its masters. It changes nothing. Errors:
// that of ctx; ErrClosed.
func (l *Locker) Change(ctx context.Context) (Change, error) {
	if !l.enter() {
		return Change{}, ErrClosed
	}
	defer l.leave()
	l.Ready(ctx)
	if err := l.lookAgain(ctx); err != nil {
		return Change{}, err
	}
	return l.progress(l.guard.snap.Load()), nil
}

// progress is what a snapshot tells of the change.
func (l *Locker) progress(s *snapshot) Change {
	m := s.set
	c := Change{Set: l.setOf(m), Masters: l.Masters()}
	wait := completeAfter * l.longestTTL()
	goal, target := m.rule.first, m.epoch
	if m.rule.joint() {
		goal, target = m.rule.second, m.epoch+1
	}
	raised, open := uint64(0), uint64(0)
	var lefts []time.Duration
	for _, i := range m.order {
		st := &s.masters[i]
		if st.phase == phaseDown {
			continue
		}
		if m.rule.first&bit(i) != 0 && st.change.Epoch >= m.epoch {
			raised |= bit(i)
			lefts = append(lefts, wait-fromMicros(st.read-st.change.Since))
		}
		if goal&bit(i) != 0 && st.change.Alone >= target {
			open |= bit(i)
		}
	}
	c.Raised, c.RaisedAll = bits.OnesCount64(raised), majority(raised, m.rule.first)
	c.Open, c.OpenAll = bits.OnesCount64(open), majority(open, goal)
	if c.RaisedAll && m.rule.joint() {
		c.Left = max(0, nth(lefts, quorumOf(bits.OnesCount64(m.rule.first))))
		c.Complete = c.Left == 0
	}
	return c
}

// RaiseEpoch writes the epoch of this Locker's state into the markers of all masters that can be reached. From when a
// majority of the old masters has it, programs that go by an earlier state are granted nothing there; what they hold ends
// with its validity. So it is called when every program goes by both sets. Programs that do look again at each master
// once, as they do when the guard time is raised.
//
// With an even epoch it ends a change: programs that go by both sets still are refused from then on.
//
// Errors: ErrIncomplete where the epoch is even and a majority does not say that the set may act alone; ErrNoQuorum with
// the reason of each master that has it not, where a majority of a set has not; that of ctx; ErrClosed; ErrInvalidOption
// for epoch 0. What was written stays written, and calling it again is harmless.
func (l *Locker) RaiseEpoch(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	m := l.set.Load()
	if m.epoch == 0 {
		return invalid("the set of masters has epoch 0, which is the first and need not be written")
	}
	l.Ready(ctx)
	if err := l.lookAgain(ctx); err != nil {
		return err
	}
	alone := int64(0)
	if !m.rule.joint() {
		if !majority(l.alone(m), m.rule.first) {
			return l.incomplete(m)
		}
		alone = m.epoch
	}
	return l.writeEpoch(ctx, m, m.rule, alone)
}

// FinishChange lets the next masters of this Locker's state act alone, once the change is complete: see [Change]. It looks
// at the old masters, and writes nothing where they do not show that; then it fails with ErrIncomplete, and how long that
// still takes. It neither waits for it nor asks whether programs go by both sets; those that do go on.
//
// Other errors: ErrInvalidOption where the epoch is even; those of [Locker.RaiseEpoch].
func (l *Locker) FinishChange(ctx context.Context) error {
	m := l.set.Load()
	if !m.rule.joint() {
		return invalid("the set of masters has epoch %d, and no change under way", m.epoch)
	}
	c, err := l.Change(ctx)
	switch {
	case err != nil:
		return err
	case c.OpenAll:
	case !c.RaisedAll:
		return fmt.Errorf("%w: %d of %d old masters have epoch %d, and a majority is needed; see RaiseEpoch", ErrIncomplete, c.Raised, len(c.Set.Masters), m.epoch)
	case !c.Complete:
		return fmt.Errorf("%w: locks of the old masters alone may live for another %v", ErrIncomplete, c.Left.Round(time.Millisecond))
	}
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	return l.writeEpoch(ctx, m, rule{first: m.rule.second}, m.epoch+1)
}

// writeEpoch has the epoch of m, and what may act alone, written on the masters of a rule until all that can be reached
// have both, and fails where those are no majority of each of its sets.
func (l *Locker) writeEpoch(ctx context.Context, m *members, to rule, alone int64) error {
	have := func(s *snapshot) (set uint64) {
		for rest := to.all(); rest != 0; {
			i := popFirst(&rest)
			if c := s.masters[i].change; c.Epoch >= m.epoch && c.Alone >= alone {
				set |= bit(i)
			}
		}
		return set
	}
	tries := make(map[int]int)
	again := time.NewTicker(admitRetry)
	defer again.Stop()
	for {
		moved := l.guard.changes()
		s := l.guard.snap.Load()
		if s.set.epoch != m.epoch {
			return invalid("the set of masters has epoch %d by now", s.set.epoch)
		}
		todo := 0
		for rest := to.all() &^ have(s); rest != 0; {
			i := popFirst(&rest)
			marker, err := scripts.ParseMarker(s.masters[i].text)
			if err != nil || s.masters[i].phase == phaseDown || tries[i] >= guardTries {
				continue
			}
			tries[i]++
			todo++
			req := scripts.AdmitRequest{Step: scripts.AdmitEpoch, Identity: marker.Identity, Seen: s.masters[i].text, Epoch: m.epoch, Alone: max(marker.Alone, alone)}
			if ok, err := l.step(ctx, i, &s.masters[i], req); err != nil {
				return &LockError{Op: "change", Name: l.cfg.prefix, Cause: err, Masters: l.statesOf(s)}
			} else if !ok {
				tries[i] = guardTries // an error reply will be the same again
			}
		}
		if todo == 0 && s.connecting == 0 {
			return l.hasEpoch(s, to, have(s))
		}
		select {
		case <-moved:
		case <-again.C:
		case <-ctx.Done():
			return &LockError{Op: "change", Name: l.cfg.prefix, Cause: contextError(ctx), Masters: l.statesOf(s)}
		case <-l.closing:
			return ErrClosed
		}
	}
}

// hasEpoch is nil where those that have it are a majority of each set.
func (l *Locker) hasEpoch(s *snapshot, to rule, have uint64) error {
	if to.has(have) {
		return nil
	}
	var errs []error
	for rest := to.all() &^ have; rest != 0; {
		i := popFirst(&rest)
		err := s.masters[i].err
		if err == nil {
			err = fmt.Errorf("its marker has epoch %d, and lets %d act alone", s.masters[i].change.Epoch, s.masters[i].change.Alone)
		}
		errs = append(errs, l.masterError(i, "change", err))
	}
	return &LockError{Op: "change", Name: l.cfg.prefix, Decision: ErrNoQuorum, Granted: bits.OnesCount64(have), Quorum: to.least(), N: to.n(), Masters: listErrors(errs)}
}

// statesIn is why masters of m do not vote.
func (l *Locker) statesIn(s *snapshot, m *members) *multierror.Error {
	of := *s
	of.set = m
	return l.statesOf(&of)
}

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/reconfig"
)

// ChangeInfo describes a change of the masters of this Locker.
type ChangeInfo struct {
	At  time.Time // when it was made, or refused
	Set Set
	Err error // why it was not made
}

// ChangeMasters has this Locker go by the next state of the fleet's configuration; held locks go on. The states come
// one after the other, and s is the one that follows, or the present one, which changes nothing. How a fleet is taken
// through them, and what makes it safe, is in docs/masters.md.
//
// From one set to both, it waits until a majority of the next masters votes: new ones are in quarantine first. From
// then on every lock that is taken or extended needs a majority of each, and locks that are held are given to the
// next masters. From both to the next set, it waits until each lock held here that is extended is on a majority of
// the next masters. Then the old ones are told of releases only, and after the longest TTL their connections are
// closed, unless another Locker of the pool uses them.
//
// Errors, with nothing changed: ErrInvalidOption where s cannot be right; ErrIncomplete where s is the next set alone
// and the masters do not say that it may act so ([Locker.FinishChange]); ErrNoQuorum with that of ctx where too few
// of the next masters vote; that of ctx; ErrClosed. A Locker that has slept while the fleet went on takes any later
// state; until then its locks were refused. It is safe for concurrent use; changes wait for each other.
func (l *Locker) ChangeMasters(ctx context.Context, s Set) (err error) {
	if f := l.cfg.trace.Changed; f != nil {
		defer func() { post(l.events, f, ChangeInfo{At: time.Now(), Set: s, Err: err}) }()
	}
	if err := s.check(); err != nil {
		return err
	}
	if l.cfg.guard == 0 && s.Epoch > 0 {
		return errUnguarded
	}
	return l.withRecords(ctx, "change", func(*admission.View) error { // an idle program has not heard how far the fleet is
		select {
		case l.changing <- struct{}{}:
			defer func() { <-l.changing }()
		case <-ctx.Done():
			return l.stopped("change", contextError(ctx))
		case <-l.closing:
			return ErrClosed
		}
		err := reconfig.MayFollow(l.seen(l.voters.View(), nil), s.Epoch)
		if err != nil { // the pool does not hear of its masters
			return refused(err)
		}
		want, err := s.join(l.pool)
		if err != nil {
			return err
		}
		return l.changeTo(ctx, want)
	})
}

// changeTo does what reconfig says until the Locker goes by want.
func (l *Locker) changeTo(ctx context.Context, want *quorum.Config) error {
	for {
		moved := l.voters.Changed()
		view := l.voters.View()
		step, err := reconfig.Next(l.seen(view, want), want)
		if err != nil {
			return refused(err)
		}
		var again <-chan time.Time
		switch {
		case step == reconfig.Stay:
			if view.Config.Follow != view.Config.Rule { // a change that was begun and given up
				l.voters.Use(want)
			}
			return nil
		case step == reconfig.Adopt:
			l.adopt(want)
			return nil
		case step == reconfig.Carry:
			again = time.After(20 * time.Millisecond) // nobody tells when grants have been extended
		case view.Config.Follow != want.Rule: // Prepare; moved is closed by it, unless the Locker is closed
			l.voters.Use(view.Config.Following(want))
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
			if step == reconfig.Prepare {
				return l.notVoting("change", view, want, contextError(ctx))
			}
			return l.stopped("change", contextError(ctx))
		case <-l.closing:
			return ErrClosed
		}
	}
}

// adopt goes by want from now on. Grants that go by one set are extended soon, one after the other, if there are two.
func (l *Locker) adopt(want *quorum.Config) {
	l.voters.Use(want)
	if !want.Rule.Joint() {
		return
	}
	for _, g := range l.grants.All() {
		if g.Extends() && g.Config() != want {
			g.ExtendSoon(time.Duration(jitter.Int64N(int64(l.cfg.lock.TTL / 4))))
		}
	}
}

// seen is what reconfig goes by.
func (l *Locker) seen(view *admission.View, want *quorum.Config) reconfig.Seen {
	s := reconfig.Seen{Config: view.Config, Masters: view.Masters, Carried: true}
	if want == nil {
		return s
	}
	for _, g := range l.grants.All() {
		if by := g.Config(); g.Extends() && by.Rule != view.Config.Rule && !want.Within(by) {
			s.Carried = false
		}
	}
	return s
}

// refused is an error of reconfig as callers see it.
func refused(err error) error {
	if errors.Is(err, ErrIncomplete) {
		return err
	}
	return invalid("%v", err)
}

// A Change is how far the fleet is on the way from one set of masters to the next, as its masters tell.
type Change struct {
	Set Set // the state that this Locker goes by
	// Raised is how many of Set.Masters have the epoch of Set in their records, or a later one: those refuse programs that
	// go by an earlier state. RaisedAll tells whether they are a majority.
	Raised    int
	RaisedAll bool
	// Complete tells whether a majority of Set.Masters has had it for so long that nothing is held by the old masters
	// alone, and nothing will be. Left is for how long yet, where they are a majority.
	Complete bool
	Left     time.Duration
	// Open is how many of Set.Next (of Set.Masters, where the epoch is even) say that they may act alone; OpenAll tells
	// whether they are a majority.
	Open    int
	OpenAll bool

	Masters []MasterInfo // the states of all of them
}

// Change reads the records of all masters that can be reached, and tells how far the change is that leads away from the
// old masters of this Locker's state, or, if the epoch is even, has led to its masters. Errors: that of ctx; ErrClosed.
func (l *Locker) Change(ctx context.Context) (c Change, err error) {
	err = l.withRecords(ctx, "change", func(view *admission.View) error {
		p := reconfig.Look(l.seen(view, nil))
		c = Change{
			Set: l.setOf(view.Config), Raised: p.Raised.Len(), RaisedAll: p.RaisedAll, Complete: p.Complete, Left: p.Left,
			Open: p.Open.Len(), OpenAll: p.OpenAll, Masters: l.mastersOf(view),
		}
		return nil
	})
	return c, err
}

// RaiseEpoch writes the epoch of this Locker's state into the records of all masters that can be reached. From when a
// majority of the old masters has it, programs that go by an earlier state are granted nothing there; what they hold
// ends with its validity. So it is called when every program goes by both sets. Programs that do read each record
// once more. With an even epoch it ends a change: programs that go by both sets still are refused from then on.
//
// Errors: ErrIncomplete where the epoch is even and a majority does not say that the set may act alone; ErrNoQuorum
// with the reason of each master that does not have it, where a majority of a set lacks it; that of ctx; ErrClosed;
// ErrInvalidOption for epoch 0. What was written stays written, and calling it again is harmless.
func (l *Locker) RaiseEpoch(ctx context.Context) error { return l.writeChange(ctx, reconfig.Raise) }

// FinishChange lets the next masters of this Locker's state act alone, once the change is complete: see [Change]. It
// looks at the old masters, and writes nothing where they do not show that; then it fails with ErrIncomplete, and how
// long that still takes. It neither waits for it nor asks whether programs go by both sets; those that do go on.
//
// Other errors: ErrInvalidOption where the epoch is even; those of [Locker.RaiseEpoch].
func (l *Locker) FinishChange(ctx context.Context) error { return l.writeChange(ctx, reconfig.Finish) }

// writeChange writes what reconfig says.
func (l *Locker) writeChange(ctx context.Context, what func(reconfig.Seen) (reconfig.Writing, error)) error {
	return l.withRecords(ctx, "change", func(view *admission.View) error {
		w, err := what(l.seen(view, nil))
		if err != nil {
			return refused(err)
		}
		return l.writeNumbers(ctx, w)
	})
}

// writeNumbers writes what reconfig says.
func (l *Locker) writeNumbers(ctx context.Context, w reconfig.Writing) error {
	return l.write(ctx, "change", scripts.AdmitEpoch, w.Rule, false,
		func(st *admission.State, r *scripts.Record) (bool, error) {
			if w.Has(st) {
				return true, nil
			}
			if !w.May(st) {
				return false, errors.New("its admission record is of another change of the masters")
			}
			r.Masters, r.Next, r.Epoch = w.Record.Masters, w.Record.Next, w.Record.Epoch
			r.Alone = max(st.Alone, w.Record.Alone)
			return false, nil
		})
}

// AbortChange gives up a change of the masters, and lets the old ones of this Locker's state act alone again, at the
// next epoch: {"epoch": 2, "masters": [the old]} after epoch 1. It is the way back after [Locker.RaiseEpoch], as long as
// [Locker.FinishChange] has not let the next masters act alone. It needs a majority of the next masters too, from which
// it takes that possibility first. Clients that have the old and the next masters adopt the new state by themselves; a
// lock that they hold goes on. The next change begins at the epoch that follows.
//
// Errors: ErrInvalidOption if the epoch is even, or the next masters may act alone already; ErrNoQuorum with the reason of
// each master if too few of them can be written, and then nothing is written; that of ctx; ErrClosed. Calling it again is
// harmless.
func (l *Locker) AbortChange(ctx context.Context) error {
	return l.withRecords(ctx, "change", func(view *admission.View) error {
		list, err := reconfig.Abort(l.seen(view, nil))
		if err != nil {
			return refused(err)
		}
		for _, w := range list {
			if err := l.writeNumbers(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

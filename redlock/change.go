package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// reconfigure implements [Admin.Reconfigure] for one shard.
func (l *shard) reconfigure(ctx context.Context, s Configuration) (err error) {
	defer func() {
		l.events.post(redlockinfo.Event{Kind: kindReconfigured, Time: time.Now(), Token: s.Epoch, Err: err})
	}()
	if err := s.check(); err != nil {
		return err
	}
	if l.cfg.guard == 0 && s.Epoch > 0 {
		return errUnguarded
	}
	return l.withRecords(ctx, "change", func(*admission.View) error { // an idle client has old records
		select {
		case l.changing <- struct{}{}:
			defer func() { <-l.changing }()
		case <-ctx.Done():
			return l.stopped("change", contextError(ctx))
		case <-l.closing:
			return ErrClosed
		}
		if s.lists(l.configuration()) {
			return nil
		}
		err := reconfig.MayFollow(l.seen(l.voters.View(), nil), s.Epoch)
		if err != nil { // the masters of s are not added to the pool
			return refused(err)
		}
		want, err := s.join(l.pool)
		if err != nil {
			return err
		}
		return l.changeTo(ctx, want)
	})
}

// changeTo performs the steps of reconfig until the Locker uses want.
func (l *shard) changeTo(ctx context.Context, want *quorum.Config) error {
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
			if view.Config.Follow != view.Config.Rule { // a change that was begun and abandoned
				l.voters.SetConfig(want)
			}
			return nil
		case step == reconfig.Adopt:
			l.adopt(want)
			return nil
		case step == reconfig.Carry:
			again = time.After(20 * time.Millisecond) // extended leases send no notification
		case view.Config.Follow != want.Rule: // Prepare closes moved, unless the Locker is closed
			l.voters.SetConfig(view.Config.Following(want))
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

// adopt makes the Locker use want. If want has two sets, leases that use one set are soon extended, one after the
// other.
func (l *shard) adopt(want *quorum.Config) {
	l.voters.SetConfig(want)
	if !want.Rule.Joint() {
		return
	}
	for _, g := range l.leases.All() {
		if g.Extends() && g.Config() != want {
			g.ExtendSoon(time.Duration(jitter.Int64N(int64(l.cfg.lock.TTL / 4))))
		}
	}
}

// seen returns the input of reconfig.
func (l *shard) seen(view *admission.View, want *quorum.Config) reconfig.Seen {
	s := reconfig.Seen{Config: view.Config, Masters: view.Masters, Carried: true}
	if want == nil {
		return s
	}
	for _, g := range l.leases.All() {
		if by := g.Config(); g.Extends() && by.Rule != view.Config.Rule && !want.Within(by) {
			s.Carried = false
		}
	}
	return s
}

// refused converts an error of reconfig to one for callers.
func refused(err error) error {
	if errors.Is(err, errIncomplete) {
		return err
	}
	return invalid("%v", err)
}

// change reads the records of all masters that can be reached, and reports the progress of the change away from the old
// masters of this Locker's configuration or, if the epoch is even, of the change that led to its masters. It returns
// the error of ctx, or ErrClosed.
func (l *shard) change(ctx context.Context) (c private.Change, err error) {
	err = l.withRecords(ctx, "change", func(view *admission.View) error {
		p := reconfig.Look(l.seen(view, nil))
		c = private.Change{
			Raised: p.Raised.Len(), RaisedAll: p.RaisedAll, Complete: p.Complete, Left: p.Left,
			Open: p.Open.Len(), OpenAll: p.OpenAll,
		}
		return nil
	})
	return c, err
}

// raiseEpoch writes the epoch of this Locker's configuration into the records of all masters that can be reached. Once
// a majority of the old masters has it, clients with an earlier configuration acquire nothing there, and their locks
// end with their validity. So it is called when every client uses the joint configuration. Those clients read each
// record once more. With an even epoch it ends a change: from then on clients that still use the joint configuration
// are refused.
//
// It fails if the epoch is even and no majority says that the set is final. It returns ErrNoQuorum with the reason of
// each master that does not have the epoch, if it did not reach a majority of each set. Other errors are that of ctx,
// ErrClosed, and ErrInvalid for epoch 0. Records that were written stay, and calling it again is harmless.
func (l *shard) raiseEpoch(ctx context.Context) error { return l.writeChange(ctx, reconfig.Raise) }

// finishChange makes the next masters of this Locker's configuration final, once the change is complete: see change. If
// the old masters do not show that it is complete, finishChange writes nothing and returns an error with the time that
// is left. It does not wait, and it does not check whether clients use the joint configuration; those that do go on.
//
// It returns ErrInvalid if the epoch is even, and otherwise the errors of raiseEpoch.
func (l *shard) finishChange(ctx context.Context) error { return l.writeChange(ctx, reconfig.Finish) }

// writeChange writes the records that a step of reconfig requires.
func (l *shard) writeChange(ctx context.Context, what func(reconfig.Seen) (reconfig.Writing, error)) error {
	return l.withRecords(ctx, "change", func(view *admission.View) error {
		w, err := what(l.seen(view, nil))
		if err != nil {
			return refused(err)
		}
		return l.writeNumbers(ctx, w)
	})
}

// writeNumbers writes the numbers of w into the records.
func (l *shard) writeNumbers(ctx context.Context, w reconfig.Writing) error {
	return l.write(ctx, "change", scripts.AdmitEpoch, w.Rule, false,
		func(st *admission.State, r *scripts.Record) (bool, error) {
			//mutant:abort-quarantine = false
			if w.Voting && !st.Admitted {
				return false, errors.New("it does not vote")
			}
			if w.Has(st) {
				return true, nil
			}
			if !w.May(st) {
				return false, errors.New("its admission record is of another change of the masters")
			}
			r.Masters, r.Next, r.Epoch = w.Record.Masters, w.Record.Next, w.Record.Epoch
			r.Alone = max(st.Record.Alone, w.Record.Alone)
			return false, nil
		})
}

// abortChange abandons a change of the masters, and makes the old masters of this Locker's configuration final again,
// at the next epoch: {"epoch": 2, "masters": [the old]} after epoch 1. It undoes raiseEpoch, as long as finishChange
// has not made the next masters final. It needs a majority of the next masters that votes, too, which it first prevents
// from becoming final. Clients with the joint configuration adopt the new one by themselves and keep their locks. The
// next change begins at the epoch that follows.
//
// It returns ErrInvalid if the epoch is even, or the next masters are final already. If too few records can be written,
// it writes none and returns ErrNoQuorum with the reason of each master. Other errors are that of ctx, and ErrClosed.
// Calling it again is harmless.
func (l *shard) abortChange(ctx context.Context) error {
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

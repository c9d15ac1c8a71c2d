package voters

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// View is what a round that begins now goes by.
func (v *Voters) View() *admission.View { return v.view.Load() }

// Changed returns a channel that is closed with the next View that differs. Take it before the View that is looked at.
func (v *Voters) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.moved
}

// Ready returns the present View. It waits for a better one only while no quorum votes and one may in a moment, never
// for a minority. The error is why ctx ended, or Settings.Closed; the View is there in every case.
func (v *Voters) Ready(ctx context.Context) (*admission.View, error) {
	return v.Await(ctx, func(view *admission.View) bool { return !view.Hopeful() })
}

// Await waits for a View of which ok is true. The error is as that of Ready.
func (v *Voters) Await(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	for {
		view := v.view.Load()
		if ok(view) {
			return view, nil
		}
		moved := v.Changed()
		if view != v.view.Load() {
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return view, round.ContextError(ctx)
		case <-v.over:
			return view, v.set.Closed
		}
	}
}

// Doubt has the record of master i read anew: a vote has shown another one than a round expected. A record that is
// known by now is not read again.
func (v *Voters) Doubt(i int, shown string) {
	v.tell(func() {
		if f := &v.facts[i]; f.Text != shown {
			f.Read = false
		}
	})
}

// Again has Run decide anew: something that it goes by has changed.
func (v *Voters) Again() { v.tell(func() {}) }

// Use goes by another configuration, and returns when the View does, or after Close. Masters that leave are told of
// releases until the longest TTL is over; then the pool may close their connections.
func (v *Voters) Use(c *quorum.Config) {
	v.set.Clocks.Use(masters(c))
	seen := make(chan struct{})
	v.tell(func() {
		v.use(c)
		v.after = append(v.after, func() { close(seen) })
	})
	select {
	case <-seen:
	case <-v.over:
	}
}

// Admit admits masters without their quarantine until ok is true of the View, or ctx ends: somebody says that nobody
// holds a lock. One that has voted since needs its quarantine all the same. The error is as that of Ready.
func (v *Voters) Admit(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	v.tell(func() { v.admitting, v.let = v.admitting+1, 0 })
	defer v.tell(func() { v.admitting-- })
	return v.Await(ctx, ok)
}

// Look waits until something is known of each master, and has all records read once more: one that nobody has used for
// a while may have changed. The View goes by the answers. The error is as that of Ready.
func (v *Voters) Look(ctx context.Context) (*admission.View, error) {
	view, err := v.Await(ctx, (*admission.View).Settled)
	if err == nil {
		read := func() (scripts.AdmitRequest, error) { return scripts.AdmitRequest{Step: scripts.AdmitRead}, nil }
		_, err = v.steps(ctx, view.Config.Rule.All(), read)
	}
	return v.View(), err
}

// Step sends one step to master i, and returns when the View goes by the answer. The error is as that of Ready, or why
// there was no answer.
func (v *Voters) Step(ctx context.Context, i int, req scripts.AdmitRequest) error {
	failed, err := v.steps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) { return req, nil })
	return cmp.Or(err, failed)
}

// Quarantine puts master i into quarantine, also if its record names other masters, unless the other records say that
// this client's list is wrong. It is else as Step.
func (v *Voters) Quarantine(ctx context.Context, i int) error {
	failed, err := v.steps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) {
		return v.fleet(v.set.Clock.Now()).Quarantine(i)
	})
	if err = cmp.Or(err, failed); err == nil && v.View().Masters[i].Phase == admission.Voting {
		return fmt.Errorf("%s has refused it, and goes on voting: its clock is more than %v from the median of the "+
			"masters, or its record is of a later epoch", v.set.Pool.Addr(i), scripts.Window)
	}
	return err
}

// steps sends a step to several masters. failed is why one of them has not answered; the rest is as for Step.
func (v *Voters) steps(
	ctx context.Context, set quorum.Set, req func() (scripts.AdmitRequest, error),
) (failed, err error) {
	done := make(chan error, set.Len())
	v.tell(func() {
		for i := range set.All() {
			f := &v.facts[i]
			if !f.Up {
				done <- cmp.Or(f.Err, pool.ErrDown)
				continue
			}
			if r, err := req(); err != nil {
				done <- err
			} else {
				v.send(i, r, func(err error) { done <- err })
			}
		}
	})
	for range set.Len() {
		select {
		case err := <-done:
			failed = cmp.Or(failed, err)
		case <-ctx.Done():
			return nil, round.ContextError(ctx)
		case <-v.over:
			return nil, v.set.Closed
		}
	}
	return failed, nil
}

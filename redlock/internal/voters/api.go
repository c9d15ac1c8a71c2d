package voters

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// View is what a round that begins now goes by.
func (v *Voters) View() *admission.View { return v.view.Load() }

// Changed returns a channel that is closed with the next View that differs. Take it before the View that is looked at.
func (v *Voters) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.moved
}

// Ready returns the present View. It waits for a better one only while no quorum votes and one may in a moment, as
// when a program has just started; it never waits for a minority. The error is that of ctx, or ErrClosed; the View is
// there in every case.
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
			return view, ctx.Err()
		case <-v.over:
			return view, ErrClosed
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

// Use goes by another configuration, and returns when the View does, or after Close.
func (v *Voters) Use(c *quorum.Config) {
	v.set.Clocks.Use(c.Rule.All() | c.Follow.All())
	_ = v.wait(context.Background(), func() { v.config = c }) // it fails only after Close
}

// Leave gives masters back to the pool after some time: they are no longer of the configuration.
func (v *Voters) Leave(set quorum.Set, after time.Duration) {
	v.tell(func() { v.leaving = append(v.leaving, leaver{set, v.set.Clock.Now(), after}) })
}

// wait has Run do something, and returns when the View goes by it.
func (v *Voters) wait(ctx context.Context, do func()) error {
	seen := make(chan struct{})
	v.tell(func() {
		do()
		v.after = append(v.after, func() { close(seen) })
	})
	select {
	case <-seen:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-v.over:
		return ErrClosed
	}
}

// Step sends one step to master i, and returns when the View goes by the answer. answered reports whether there was
// one; what it was stands in the View. The error is as that of Ready.
func (v *Voters) Step(ctx context.Context, i int, req scripts.AdmitRequest) (answered bool, err error) {
	return v.steps(ctx, quorum.One(i), func() scripts.AdmitRequest { return req })
}

// Admit admits masters without their quarantine until ok is true of the View, or ctx ends: somebody says that nobody
// holds a lock. The error is as that of Ready.
func (v *Voters) Admit(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	v.tell(func() { v.admitting++ })
	defer v.tell(func() { v.admitting-- })
	return v.Await(ctx, ok)
}

// Quarantine puts master i into quarantine, whatever its record says. It is else as Step.
func (v *Voters) Quarantine(ctx context.Context, i int) (answered bool, err error) {
	return v.steps(ctx, quorum.One(i), func() scripts.AdmitRequest { return v.fleet(v.set.Clock.Now()).Quarantine(i) })
}

// LookAgain has the records of all masters that are up read once more, and returns when the View goes by the answers:
// the record of a master that nobody has used for a while may have changed. The error is as that of Ready.
func (v *Voters) LookAgain(ctx context.Context) error {
	read := func() scripts.AdmitRequest { return scripts.AdmitRequest{Step: scripts.AdmitRead} }
	_, err := v.steps(ctx, v.view.Load().Config.Rule.All(), read)
	return err
}

// steps is Step for several masters. answered reports whether all of them have answered.
func (v *Voters) steps(
	ctx context.Context, set quorum.Set, req func() scripts.AdmitRequest,
) (answered bool, err error) {
	done := make(chan error, set.Len())
	v.tell(func() {
		for i := range set.All() {
			if v.facts[i].Up {
				v.send(i, v.tracks[i].session, req(), func(err error) { done <- err })
			} else {
				done <- pool.ErrDown
			}
		}
	})
	answered = true
	for range set.Len() {
		select {
		case err := <-done:
			answered = answered && err == nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-v.over:
			return false, ErrClosed
		}
	}
	return answered, nil
}

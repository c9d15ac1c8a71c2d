package monitor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/internal/admission"
)

// View returns the View that a round uses which begins now.
func (m *Monitor) View() *admission.View { return m.view.Load() }

// Changed returns a channel that is closed with the next View that differs. Take it before the View that is looked at.
func (m *Monitor) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Ready returns the present View. It waits for a better one only while no quorum votes and one may in a moment, never
// for a minority. The error is why ctx ended, or Settings.Closed; the View is there in every case.
func (m *Monitor) Ready(ctx context.Context) (*admission.View, error) {
	return m.Await(ctx, func(view *admission.View) bool { return !view.Hopeful() })
}

// Await waits until ok is true of the View, and returns it. It returns the errors of Ready.
func (m *Monitor) Await(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	for {
		view := m.view.Load()
		if ok(view) {
			return view, nil
		}
		moved := m.Changed()
		if view != m.view.Load() {
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return view, fault.ContextError(ctx)
		case <-m.closed:
			return view, m.settings.Closed
		}
	}
}

// Doubt makes Run read the record of master i again: a vote has shown another one than a round expected. A record that
// is known by now is not read again.
func (m *Monitor) Doubt(i int, shown string) {
	m.enqueue(func() {
		if f := &m.facts[i]; f.Text != shown {
			f.Read = false
		}
	})
}

// Reevaluate makes Run decide again, because something that it uses has changed.
func (m *Monitor) Reevaluate() { m.enqueue(func() {}) }

// SetConfig replaces the configuration, and returns when the View uses it, or after Close. Masters that leave are
// notified of releases until the longest TTL has expired; then the pool may close their connections.
func (m *Monitor) SetConfig(c *quorum.Config) {
	m.settings.Clocks.Use(masters(c))
	seen := make(chan struct{})
	m.enqueue(func() {
		m.applyConfig(c)
		m.after = append(m.after, func() { close(seen) })
	})
	select {
	case <-seen:
	case <-m.closed:
	}
}

// Admit admits masters without their quarantine until ok is true of the View, or ctx ends. The caller asserts that no
// client holds a lock. A master that has voted since needs its quarantine all the same. Admit returns the
// errors of Ready.
func (m *Monitor) Admit(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	m.enqueue(func() { m.byHand = byHand{calls: m.byHand.calls + 1} })
	defer m.enqueue(func() { m.byHand.calls-- })
	return m.Await(ctx, ok)
}

// ReadRecords waits until something is known of each master, and reads all records once more: a record that no client
// has used for a while may have changed. The View uses the answers. It returns the errors of
// Ready.
func (m *Monitor) ReadRecords(ctx context.Context) (*admission.View, error) {
	view, err := m.Await(ctx, (*admission.View).Settled)
	if err == nil {
		read := func() (scripts.AdmitRequest, error) { return scripts.AdmitRequest{Step: scripts.AdmitRead}, nil }
		_, err = m.sendSteps(ctx, view.Config.Rule.All(), read)
	}
	return m.View(), err
}

// Step sends one step to master i, and returns when the View uses the answer. It returns the errors of Ready, or the
// reason why there was no answer.
func (m *Monitor) Step(ctx context.Context, i int, req scripts.AdmitRequest) error {
	failed, err := m.sendSteps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) { return req, nil })
	return cmp.Or(err, failed)
}

// Quarantine puts master i into quarantine, also if its record names other masters, unless the other records say that
// this client's list is wrong. Otherwise it behaves like Step.
func (m *Monitor) Quarantine(ctx context.Context, i int) error {
	failed, err := m.sendSteps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) {
		return m.deployment(m.settings.Clock.Now()).Quarantine(i)
	})
	if err = cmp.Or(err, failed); err == nil && m.View().Masters[i].Phase == admission.Voting {
		return fmt.Errorf("%s has refused it, and continues to vote: its clock is more than %v from the median of the "+
			"masters, or its record is of a later epoch", m.settings.Pool.Addr(i), skew.Window)
	}
	return err
}

// sendSteps sends a step to several masters. failed is why one of them has not answered; the rest is as for Step.
func (m *Monitor) sendSteps(
	ctx context.Context, set quorum.Set, req func() (scripts.AdmitRequest, error),
) (failed, err error) {
	done := make(chan error, set.Len())
	m.enqueue(func() {
		for i := range set.All() {
			f := &m.facts[i]
			if !f.Up {
				done <- cmp.Or(f.Err, transport.ErrDown)
				continue
			}
			if r, err := req(); err != nil {
				done <- err
			} else {
				m.sendStep(i, r, func(err error) { done <- err })
			}
		}
	})
	for range set.Len() {
		select {
		case err := <-done:
			failed = cmp.Or(failed, err)
		case <-ctx.Done():
			return nil, fault.ContextError(ctx)
		case <-m.closed:
			return nil, m.settings.Closed
		}
	}
	return failed, nil
}

package monitor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// View returns the present View.
func (m *Monitor) View() *admission.View { return m.view.Load() }

// Changed returns a channel that is closed when a different View is published. To miss no change, callers must call
// Changed before View.
func (m *Monitor) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Ready returns the present View. It waits only while no quorum votes but a quorum may vote soon. It does not wait for
// the remaining masters. The error says why ctx ended, or is Settings.Closed, or fault.ErrPoolClosed. The View is never
// nil.
func (m *Monitor) Ready(ctx context.Context) (*admission.View, error) {
	return m.Await(ctx, func(view *admission.View) bool { return !view.Hopeful() })
}

// Await waits until ok returns true for the View, and returns the View. It returns the errors of Ready.
func (m *Monitor) Await(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	for {
		view := m.view.Load()
		if ok(view) {
			return view, nil
		}
		moved := m.Changed()
		switch {
		case view != m.view.Load():
			continue
		case m.settings.Pool.Closed(): // no master will vote again
			return view, fault.ErrPoolClosed
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

// Doubt must be called when a vote of master i has shown a record that the round did not expect. It makes Run read the
// record again, unless Run already knows the shown record.
func (m *Monitor) Doubt(i int, shown string) {
	m.enqueue(func() {
		if f := &m.facts[i]; f.Text != shown {
			f.Read = false
		}
	})
}

// SetConfig replaces the configuration. It returns when the View uses c, or after Close. Masters that are not in c are
// still sent releases until the longest TTL has expired. Then the pool may close their connections.
func (m *Monitor) SetConfig(c *quorum.Config) {
	m.apply(func() { m.applyConfig(c) })
}

// Settle returns when the View shows each event that the pool had reported before the call, or after Close. So a caller
// that has seen a request fail, because a connection has ended, finds the master down.
func (m *Monitor) Settle() { m.apply(func() {}) }

// apply makes Run call do, and returns when the View shows the effect, or after Close.
func (m *Monitor) apply(do func()) {
	seen := make(chan struct{})
	m.enqueue(func() {
		do()
		m.after = append(m.after, func() { close(seen) })
	})
	select {
	case <-seen:
	case <-m.closed:
	}
}

// Admit admits masters without a quarantine until ok returns true for the View, or ctx ends. The caller asserts that no
// client holds a lock. A master that has voted during the call may have granted locks: if such a master then needs a
// quarantine, Admit does not shorten that quarantine. Admit returns the errors of Ready.
func (m *Monitor) Admit(ctx context.Context, ok func(*admission.View) bool) (*admission.View, error) {
	m.enqueue(func() { m.byHand = byHand{calls: m.byHand.calls + 1} })
	defer m.enqueue(func() { m.byHand.calls-- })
	return m.Await(ctx, ok)
}

// ReadRecords waits until the state of each master is known, reads all records again, and returns a View that contains
// the answers. Records that this client has not used for a while may have changed. ReadRecords returns the errors of
// Ready.
func (m *Monitor) ReadRecords(ctx context.Context) (*admission.View, error) {
	view, err := m.Await(ctx, (*admission.View).AllKnown)
	if err == nil {
		read := func() (scripts.AdmitRequest, error) { return scripts.AdmitRequest{Step: scripts.AdmitRead}, nil }
		_, err = m.sendSteps(ctx, view.Config.Rule.All(), read)
	}
	return m.View(), err
}

// Step sends one step to master i, and returns when the View contains the answer. It returns the errors of Ready, or
// the reason why there was no answer.
func (m *Monitor) Step(ctx context.Context, i int, req scripts.AdmitRequest) error {
	failed, err := m.sendSteps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) { return req, nil })
	return cmp.Or(err, failed)
}

// Quarantine puts master i into quarantine, even if its record names other masters. It returns an error if the other
// records show that this client's list is wrong, and otherwise behaves like Step.
func (m *Monitor) Quarantine(ctx context.Context, i int) error {
	failed, err := m.sendSteps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) {
		return m.deployment(m.settings.Clock.Now()).Quarantine(i)
	})
	if err = cmp.Or(err, failed); err == nil && m.View().Masters[i].Phase == admission.Voting {
		return fmt.Errorf("%s rejected the quarantine and continues to vote: its clock is more than %v from the median of "+
			"the masters, or its record is of a later epoch", m.settings.Pool.Addr(i), skew.Window)
	}
	return err
}

// Replace puts master i into quarantine as a master of shard g, whatever its record names. It behaves like Step.
func (m *Monitor) Replace(ctx context.Context, i int, g scripts.Shard) error {
	failed, err := m.sendSteps(ctx, quorum.One(i), func() (scripts.AdmitRequest, error) {
		return m.deployment(m.settings.Clock.Now()).Replacement(i, g), nil
	})
	return cmp.Or(err, failed)
}

// sendSteps sends a step to the masters in set, and waits for the answers. The result failed says why a master has not
// answered, and err is one of the errors of Ready.
func (m *Monitor) sendSteps(
	ctx context.Context, set quorum.Set, req func() (scripts.AdmitRequest, error),
) (failed, err error) {
	done := make(chan error, set.Len())
	m.enqueue(func() {
		for i := range set.All() {
			f := &m.facts[i]
			if !f.Up {
				done <- cmp.Or(f.Err, fault.ErrDown)
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

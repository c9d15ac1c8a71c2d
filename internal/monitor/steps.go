package monitor

import (
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
)

// never is longer than any wait between two calls of decide.
const never = time.Hour

// makeMove makes the move for master i if it is due, and returns the longest time until the next call.
func (m *Monitor) makeMove(i int, move admission.Move, d *admission.Deployment, now clock.Instant) time.Duration {
	for j := range move.Gather.All() {
		if f, t := &m.facts[j], &m.tracks[j]; f.Up && !t.inFlight && t.pauseLeft(now) <= 0 {
			m.sendStep(j, scripts.AdmitRequest{Step: scripts.AdmitRead}, nil)
		}
	}
	if move.Seek > 0 {
		m.settings.Shards.seek(move.Seek)
	}
	t := &m.tracks[i]
	if t.inFlight {
		return never
	}
	if left := t.pauseLeft(now); left > 0 {
		return left
	}
	step := move.Step
	switch {
	case step == "" && move.Look > 0:
		if left := move.Look - now.Sub(t.sentAt); left > 0 {
			if move.Wait > 0 {
				left = min(left, move.Wait)
			}
			return left
		}
		step = scripts.AdmitRead
	case step == "":
		return never
	case t.refusedAt != (clock.Instant{}): // another client may have written: read the record before the next attempt
		step = scripts.AdmitRead
	case step == t.doneStep: // the step has written the record, but is still needed: do not repeat it continuously
		t.refusedAt, t.pause = now, admission.Look
		return t.pause
	}
	move.Step = step
	m.sendStep(i, d.Request(i, move), nil)
	return never
}

// pauseLeft returns how long no step may be sent yet, because the last one was refused.
func (t *track) pauseLeft(now clock.Instant) time.Duration {
	if t.refusedAt == (clock.Instant{}) {
		return 0
	}
	return t.pause - now.Sub(t.refusedAt)
}

// sendStep sends one step. Run records the answer and, when the View contains it, calls done unless done is nil.
func (m *Monitor) sendStep(i int, req scripts.AdmitRequest, done func(error)) {
	t, steps := &m.tracks[i], &m.settings.Shards.steps
	t.inFlight, t.sentAt = true, m.settings.Clock.Now()
	session, number := t.session, steps.Add(1)
	answer := receiver(func(value any, err error) {
		var adm scripts.Admission
		if err == nil {
			if adm, err = scripts.DecodeAdmission(value); err != nil {
				err = &transport.Error{Addr: m.settings.Pool.Addr(i), Op: "admit", Err: err}
			}
		}
		m.enqueue(func() {
			if session == m.tracks[i].session {
				m.recordAnswer(i, req.Step, number, &adm, err)
			}
			if done != nil {
				m.after = append(m.after, func() { done(err) })
			}
		})
	})
	call := m.view.Load().Encoder.Admit(req)
	if err := m.settings.Pool.Send(i, call, transport.Condition{Session: session}, answer); err != nil {
		answer(nil, err)
	}
}

// A receiver gets the reply to one step.
type receiver func(value any, err error)

// Reply implements transport.Receiver.
func (f receiver) Reply(_ int, value any, err error) { f(value, err) }

// recordAnswer records the answer to a step on the present connection.
func (m *Monitor) recordAnswer(i int, step scripts.AdmitStep, number uint64, adm *scripts.Admission, err error) {
	f, t := &m.facts[i], &m.tracks[i]
	t.inFlight, t.doneStep, t.refusedAt = false, "", clock.Instant{}
	if err != nil {
		f.Err, t.failedStep = err, step
		t.refusedAt, t.pause = m.settings.Clock.Now(), admission.Look
		t.memory.See(f)
		return
	}
	if step != scripts.AdmitRead || t.failedStep == scripts.AdmitRead {
		f.Err = nil // a read after a failed write keeps the error, since it does not show that writes work
	}
	t.read = adm.Time
	if rtt := m.settings.Clock.Now().Sub(t.sentAt); m.doubt && rtt <= m.config.Slowest {
		m.settings.Clocks.Look(i, adm.Time, t.sentAt.Add(rtt/2), rtt/2)
	}
	f.Expires = adm.Expires
	before := f.Returned
	f.Learn(adm.Record, number, m.settings.Shards.steps.Load())
	if f.Returned && !before { // the leases may not have come back
		t.memory.Forget()
	}
	t.memory.See(f)
	switch adm.Result {
	case scripts.AdmitDone:
		if step != scripts.AdmitRead {
			t.doneStep = step
			if f.Moved && decides(step) {
				f.Moved = false
				m.settings.Pool.RecordQuarantine(i, t.moves, string(m.settings.Prefix))
			}
		}
	case scripts.AdmitOtherIdentity, scripts.AdmitClockDiffers, scripts.AdmitOtherMasters:
		t.refusedAt, t.pause = m.settings.Clock.Now(), admission.Look
	case scripts.AdmitTooEarly: // the master's clock is a little behind our estimate
		t.refusedAt, t.pause = m.settings.Clock.Now(), admission.Look/10
	}
}

// decides reports whether a step decides again whether the master may vote. The other steps keep the decision in the
// record. If the hash slot of the keys has moved to another node since, that decision is out of date.
func decides(step scripts.AdmitStep) bool {
	return step == scripts.AdmitStart || step == scripts.AdmitReplace || step == scripts.AdmitNow
}

package voters

import (
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
)

// never is longer than any wait between two looks.
const never = time.Hour

// take makes the move m for master i if it is due, and returns when to look again at the latest.
func (v *Voters) take(i int, m admission.Move, fleet *admission.Fleet, now clock.Instant) time.Duration {
	for j := range m.Gather.All() {
		if f, t := &v.facts[j], &v.tracks[j]; f.Up && !t.inFlight && t.resting(now) <= 0 {
			v.send(j, scripts.AdmitRequest{Step: scripts.AdmitRead}, nil)
		}
	}
	t := &v.tracks[i]
	if t.inFlight {
		return never
	}
	if left := t.resting(now); left > 0 {
		return left
	}
	step := m.Step
	switch {
	case step == "" && m.Look > 0:
		if left := m.Look - now.Sub(t.asked); left > 0 {
			if m.Wait > 0 {
				left = min(left, m.Wait)
			}
			return left
		}
		step = scripts.AdmitRead
	case step == "":
		return never
	case !t.failed.IsZero(): // others may have been quicker: look before the next try
		step = scripts.AdmitRead
	case step == t.done: // it was done, and changed nothing
		t.failed, t.rest = now, admission.Look
		return t.rest
	}
	m.Step = step
	v.send(i, fleet.Request(i, m), nil)
	return never
}

// resting is for how long no step is sent to a master that has refused the last one.
func (t *track) resting(now clock.Instant) time.Duration {
	if t.failed.IsZero() {
		return 0
	}
	return t.rest - now.Sub(t.failed)
}

// send sends one step. Its answer is told to Run, and then to done, when the View goes by it, if that is not nil.
func (v *Voters) send(i int, req scripts.AdmitRequest, done func(error)) {
	v.sent++
	t := &v.tracks[i]
	t.inFlight, t.asked = true, v.set.Clock.Now()
	session, number := t.session, v.sent
	answer := receiver(func(value any, err error) {
		var adm scripts.Admission
		if err == nil {
			if adm, err = scripts.DecodeAdmission(value); err != nil {
				err = &pool.Error{Addr: v.set.Pool.Addr(i), Op: "admit", Err: err}
			}
		}
		v.tell(func() {
			if session == v.tracks[i].session {
				v.answered(i, req.Step, number, &adm, err)
			}
			if done != nil {
				v.after = append(v.after, func() { done(err) })
			}
		})
	})
	call := v.view.Load().Encoder.Admit(req)
	if err := v.set.Pool.Send(i, call, pool.Stamp{Session: session}, answer); err != nil {
		answer(nil, err)
	}
}

// A receiver gets the reply to one step.
type receiver func(value any, err error)

// Reply implements pool.Receiver.
func (f receiver) Reply(_ int, value any, err error) { f(value, err) }

// answered takes note of the answer to a step on the present connection.
func (v *Voters) answered(i int, step scripts.AdmitStep, number uint64, adm *scripts.Admission, err error) {
	f, t := &v.facts[i], &v.tracks[i]
	t.inFlight, t.done, t.failed = false, "", clock.Instant{}
	if err == nil && (step != scripts.AdmitRead || t.refused == scripts.AdmitRead) {
		f.Err = nil // that a record can be read does not say that it can be written
	}
	if err != nil {
		f.Err, t.refused = err, step
		t.failed, t.rest = v.set.Clock.Now(), admission.Look
		t.memory.See(f)
		return
	}
	t.read = adm.Time
	f.Learn(adm.Record, number, v.sent)
	t.memory.See(f)
	switch adm.Result {
	case scripts.AdmitDone:
		if step != scripts.AdmitRead {
			t.done, f.Moved = step, false // the record was written since
		}
	case scripts.AdmitOtherIdentity, scripts.AdmitClockDiffers, scripts.AdmitOtherMasters:
		t.failed, t.rest = v.set.Clock.Now(), admission.Look
	case scripts.AdmitTooEarly: // its clock is a little behind what we reckon
		t.failed, t.rest = v.set.Clock.Now(), admission.Look/10
	}
}

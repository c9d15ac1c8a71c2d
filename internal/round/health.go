package round

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport"
)

// Health records what the last calls show about each master. A master may be connected and admitted, and still
// grant nothing: it is out of memory, or the user may not run the commands of the script. Such a master is failing
// until it grants a lock to a client that has not waited, or, if it has refused an extension, until it grants one: a
// user may lack a right that only extensions need. Acquires are still sent to it. A Health is safe for concurrent use.
type Health struct {
	onChange func(master int)
	// Answers counts the votes of all rounds, and the answers to other messages: while it grows, the masters are slow, but
	// not silent.
	Answers atomic.Int64

	granted [quorum.Most]atomic.Int64 // time of the last grant, in ns since began; 0: no grant
	calls   refusals                  // of all calls but extensions
	renewal refusals                  // of extensions
	began   time.Time

	mu sync.Mutex // held while refusals change
}

// refusals has, for each master, the error with which it has refused a call; nil if it has granted a lock since, or,
// for extensions, an extension.
type refusals [quorum.Most]atomic.Pointer[error]

// NewHealth returns a Health without any records. onChange is called when a master starts or stops failing, with no
// lock held. It must not block.
func NewHealth(onChange func(master int)) *Health {
	return &Health{onChange: onChange, began: time.Now()}
}

// grants records that a master has granted the lease of an acquire without a ticket. Refusals are ignored, since a
// master may refuse an acquire without writing, and so without showing that it can write. A grant to a waiter shows no
// more: Redis lets a script write to a full master once the script has removed another waiter.
func (h *Health) grants(i int) {
	h.granted[i].Store(max(1, int64(time.Since(h.began))))
	h.set(&h.calls, i, nil)
}

// renews records that a master has granted an extension.
func (h *Health) renews(i int) { h.set(&h.renewal, i, nil) }

// refused records that a master has answered an extension, or another call, with an error. If the other call was no
// acquire, an acquire would fail as well.
func (h *Health) refused(i int, err error, extension bool) {
	switch {
	case !transport.Answered(err), transport.ConcernsKey(err), transport.NotLoaded(err):
	case extension:
		h.set(&h.renewal, i, &err)
	default:
		h.set(&h.calls, i, &err)
	}
}

// Doubt records that a master has refused the script of a heartbeat. The last grant is then no evidence that it grants
// locks.
func (h *Health) Doubt(i int) { h.granted[i].Store(0) }

// set records the error with which a master refuses a kind of calls, or, if err is nil, that it grants them.
func (h *Health) set(kind *refusals, i int, err *error) {
	if err == nil && kind[i].Load() == nil {
		return
	}
	h.mu.Lock()
	before := h.failure(i)
	kind[i].Store(err)
	changed := (before == nil) != (h.failure(i) == nil)
	h.mu.Unlock()
	if changed {
		h.onChange(i)
	}
}

// Failing returns the masters that have answered a call with an error of the server, and have granted no lock since, or
// no extension.
func (h *Health) Failing() quorum.Set {
	return quorum.First(quorum.Most).Where(func(i int) bool { return h.failure(i) != nil })
}

// failure returns why a master fails; nil if it does not.
func (h *Health) failure(i int) error {
	for _, kind := range []*refusals{&h.calls, &h.renewal} {
		if err := kind[i].Load(); err != nil {
			return *err
		}
	}
	return nil
}

// Unknown returns the masters of set that have granted no lock within age, or are failing.
func (h *Health) Unknown(set quorum.Set, age time.Duration) quorum.Set {
	return set.Where(func(i int) bool {
		at := h.granted[i].Load()
		return at == 0 || time.Since(h.began)-time.Duration(at) > age || h.failure(i) != nil
	})
}

// Able returns the masters of a view that can grant a lock: those that vote, do not fail, and have a clock near the
// median.
func (s *Sender) Able(view *admission.View) quorum.Set {
	return view.Voting.Where(func(i int) bool { return s.Trouble(i, &view.Masters[i]) == nil })
}

// Trouble returns why master i, in the state m, cannot grant a lock; nil if it can.
func (s *Sender) Trouble(i int, m *admission.State) error {
	switch {
	case m.Phase != admission.Voting:
		return whyNot(m)
	case m.ClockOff:
		return errors.New(skew.Text(m.Off))
	}
	return s.Health.failure(i)
}

package scripts

import (
	"time"

	"github.com/redlock-go/redlock/internal/frame"
)

// An Encoder encodes the calls of one prefix and epoch. It is safe for concurrent use.
type Encoder struct {
	admission string
	epoch     int64
}

// NewEncoder returns an Encoder of a prefix, for a client whose configuration has this epoch.
func NewEncoder(p Prefix, epoch int64) *Encoder {
	return &Encoder{admission: p.Admission(), epoch: epoch}
}

// Millis converts a duration to whole milliseconds, rounded up, so that a master never keeps a key for less than
// requested.
func Millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// script returns the script for the keys of a plain lock, of a slot, or of a lock with readers.
func (k *Keys) script(plain, slot, shared *frame.Script) *frame.Script {
	if k.slot {
		return slot
	}
	return either(k, plain, shared)
}

// either returns plain for the keys of a plain lock, and shared for those of a lock with readers.
func either[T any](k *Keys, plain, shared T) T {
	if k.role == Plain {
		return plain
	}
	return shared
}

// onLock begins a call with the keys of the lock and of the admission record, and the stamp.
func (e *Encoder) onLock(script *frame.Script, k *Keys) *frame.Call {
	c := frame.New(script, k.lock, e.admission)
	c.Stamp()
	return c
}

// Repair encodes a call that restores a lease on a master that has lost it, with a fresh ballot and the token with
// which the lease was won. The caller may send it only after a majority has confirmed the lease. previous is the id of
// an imported lease that this lease replaces and that the master may still store, or "". For a share, value must be
// empty.
func (e *Encoder) Repair(
	k *Keys, lease, previous string, term Term, ballot, token int64, depth Depth, value Value,
) *frame.Call {
	c := e.acquire(k, lease, term, token, ballot, ballot, depth, value)
	c.Text("repair")
	late := term.precedes(ballot)
	if previous != "" || late {
		c.Text(previous)
	}
	if late {
		c.Text("")
		c.Digits(term.Asked)
	}
	return c
}

// Import encodes the replacement of the lease previous by lease, if the master still stores previous. With the keys of
// a reader, the call is a downgrade, and previous must be the writer's lease.
func (e *Encoder) Import(k *Keys, lease, previous string, term Term, first, last int64) *frame.Call {
	c := e.acquire(k, lease, term, first, first, last, 1, "")
	c.With(either(k, "import", "downgrade"), previous)
	if term.precedes(first) {
		c.Text("")
		c.Digits(term.Asked)
	}
	return c
}

// Extend encodes an extension or a re-entry. If the TTL of term is 0, the call only changes the depth, after the
// release of an inner lock, or the value. If value is "", the value does not change. For a share, value must be empty.
func (e *Encoder) Extend(k *Keys, lease string, term Term, depth Depth, value Value) *frame.Call {
	c := e.onLock(k.script(Extend, SlotExtend, SharedExtend), k)
	c.Text(lease)
	c.Number(term.life())
	c.Number(e.epoch)
	if k.role == Plain {
		c.Text(depth.String())
	}
	if term.TTL == 0 {
		c.Text("0")
	} else {
		c.Digits(term.Until)
	}
	if value != "" {
		c.Text(string(value))
	}
	return c
}

// An Ending describes what a release ends.
type Ending struct {
	// Leases are the ids of the leases to end: several if releases are pending, or after an import; none if only the
	// waiter leaves.
	Leases []string
	// Ballot is the largest ballot that was sent with the leases if one of their acquires may arrive after this release,
	// and 0 otherwise. The script raises the fence to Ballot.
	Ballot int64
	// Keep is how long the masters still keep the leases; with a TTL of 0, the leases end immediately. Keep may shorten
	// the term of a lease, but never prolongs it. Shares end immediately, regardless of Keep.
	Keep Term
	// Waiter is the waiter that leaves the queue, or nil. If Back is set, the waiter stays in the queue, or returns to it,
	// because its caller rolls back an acquire but continues to wait. AskBallot is then a ballot of that acquire, or the
	// masters' time; if it is older than 20 s, the waiter leaves.
	Waiter    *Ticket
	Back      bool
	AskBallot int64
}

// Release encodes the end of leases, of a wait, or of both.
func (e *Encoder) Release(k *Keys, end Ending) *frame.Call {
	c := frame.New(either(k, Release, SharedRelease), k.lock)
	if len(end.Leases) > 0 {
		c.Text(end.Leases[0])
	} else {
		c.Text("")
	}
	if end.Ballot == 0 && end.Keep == (Term{}) && end.Waiter == nil && len(end.Leases) < 2 {
		return c
	}
	if end.Ballot > 0 {
		c.Digits(end.Ballot)
	} else {
		c.Text("0")
	}
	c.Number(end.Keep.life())
	if end.Keep.TTL == 0 {
		c.Text("0")
	} else {
		c.Digits(end.Keep.Until)
	}
	switch t := end.Waiter; {
	case t == nil:
		c.With("", "", "0")
	case end.Back:
		c.Text(t.waiter)
		c.Number(t.rank)
		c.Number(end.AskBallot)
	default:
		c.With(t.waiter, "", "0")
	}
	return c.With(end.Leases[min(1, len(end.Leases)):]...)
}

// Inspect encodes a query of the holder and the waiters of a name. time is the client's estimate of the masters' time,
// not too late, in microseconds; with 0 the master's own clock decides.
func (e *Encoder) Inspect(k *Keys, time int64) *frame.Call {
	c := frame.New(Inspect, k.lock, e.admission)
	if time > 0 {
		c.Digits(time)
	}
	return c
}

// An AdmitStep is a step of the admit script.
type AdmitStep string

// The steps of an admission. All but AdmitRead write. A step that writes needs the identity and the record that the
// caller saw, and never lowers a quarantine or an epoch.
const (
	AdmitRead AdmitStep = "read"
	// AdmitStart starts a quarantine. AdmitReplace does so even if the record names other masters. AdmitEnd ends a
	// quarantine whose time has passed. AdmitNow ends a quarantine that may end early.
	AdmitStart   AdmitStep = "start"
	AdmitReplace AdmitStep = "replace"
	AdmitEnd     AdmitStep = "end"
	AdmitNow     AdmitStep = "now"
	// AdmitMaxTTL and AdmitSettle raise the quarantine: AdmitMaxTTL for an operator, AdmitSettle for a client that has
	// read a longer quarantine on other masters. AdmitMaxTTL also raises the max TTL.
	AdmitMaxTTL AdmitStep = "max-ttl"
	AdmitSettle AdmitStep = "settle"
	// AdmitEpoch raises the epoch: it writes Masters, Next, Epoch and Final.
	AdmitEpoch AdmitStep = "epoch"
	// AdmitRewrite writes the new identity of a server that is still the same, but has freed its replication backlog.
	AdmitRewrite AdmitStep = "rewrite"
)

// An AdmitRequest is one step of an admission, for one master.
type AdmitRequest struct {
	Step AdmitStep
	// Identity is the identity of the server, and Seen the admission record, as the caller has read both; Seen is "" if
	// there is no record.
	Identity, Seen string
	// Median is the masters' time in microseconds: the median of their clocks, or the latest clock that is not far from
	// the median. A master whose clock differs from Median by more than Tolerance neither starts nor ends a quarantine.
	// The times in the record are not earlier than Median.
	Median    int64
	Tolerance time.Duration
	// Record is the record to write. The script sets Identity, Admitted, Since and Raised. A record without a stamp
	// gets a new one.
	Record Record
}

// Admit encodes one step of an admission.
func (e *Encoder) Admit(request AdmitRequest) *frame.Call {
	if request.Record.Stamp == "" && request.Step != AdmitRead {
		request.Record.Stamp = NewStamp()
	}
	c := frame.New(Admit, e.admission)
	c.With(string(request.Step), request.Identity, request.Seen)
	c.Number(request.Median)
	c.Number(request.Tolerance.Microseconds())
	c.Text(request.Record.String())
	return c
}

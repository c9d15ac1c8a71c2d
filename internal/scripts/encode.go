package scripts

import (
	"sync/atomic"
	"time"
)

// Values that most calls share, boxed once.
var (
	anyEmpty any = ""
	anyZero  any = "0"
	anyOne   any = "1"
	anyThree any = "3"
	anyFour  any = "4"
	anyFive  any = "5"

	anyAcquire any = "acquire"
	anyRepair  any = "repair"
	anyImport  any = "import"
	anyAlways  any = "always"
)

// An Encoder encodes the calls of one prefix and epoch. It is safe for concurrent use.
type Encoder struct {
	admission any
	epoch     any
	ttl       atomic.Pointer[boxedTTL]
}

// A boxedTTL is a TTL as an argument.
type boxedTTL struct {
	d   time.Duration
	any any
}

// NewEncoder makes an Encoder of a prefix, for a program whose configuration has this epoch.
func NewEncoder(p Prefix, epoch int64) *Encoder {
	return &Encoder{admission: p.Admission(), epoch: epoch}
}

// Millis converts a duration to whole milliseconds, rounded up: what a master keeps is never shorter than what was
// asked for.
func Millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// millis boxes a TTL. Nearly all calls of a program have the same one, so the last is kept.
func (e *Encoder) millis(d time.Duration) any {
	if b := e.ttl.Load(); b != nil && b.d == d {
		return b.any
	}
	b := &boxedTTL{d, Millis(d)}
	e.ttl.Store(b)
	return b.any
}

// A call15 is a call and the memory of its arguments in one piece.
type call15 struct {
	Call
	args [15]any
}

// acquire encodes what all modes have in common, and leaves room for what follows.
func (e *Encoder) acquire(k *Keys, grant string, ttl time.Duration, first, last int64, mode any) *call15 {
	var firstAny any = first
	lastAny := firstAny
	if last != first {
		lastAny = last
	}
	c := &call15{Call: Call{Script: Acquire, Stamp: 7}}
	c.Args = append(c.args[:0], Acquire.sha, anyFive, k.lock, k.fence, k.queue, k.waiters, e.admission,
		anyEmpty, grant, e.millis(ttl), firstAny, lastAny, mode)
	return c
}

// Acquire encodes an acquire with the ballots first to last. A refused caller with a ticket is in the queue afterwards;
// t is nil for one without.
func (e *Encoder) Acquire(k *Keys, grant string, ttl time.Duration, first, last int64, t *Ticket) *Call {
	c := e.acquire(k, grant, ttl, first, last, anyAcquire)
	if t != nil {
		c.Args = append(c.Args, t.waiter, t.rank)
	}
	return &c.Call
}

// Repair encodes giving a grant back to a master that lost it: a fresh ballot, and the token that the grant was won
// with. The caller has the confirmation of a majority of the same round.
func (e *Encoder) Repair(k *Keys, grant string, ttl time.Duration, ballot, token int64, depth int) *Call {
	c := e.acquire(k, grant, ttl, ballot, ballot, anyRepair)
	c.Args = append(c.Args, e.epoch, token, depth)
	return &c.Call
}

// Import encodes taking over the grant previous, where it stands, as grant.
func (e *Encoder) Import(k *Keys, grant, previous string, ttl time.Duration, first, last int64) *Call {
	c := e.acquire(k, grant, ttl, first, last, anyImport)
	c.Args = append(c.Args, e.epoch, previous)
	return &c.Call
}

// Extend encodes an extension, a re-entry, or with a TTL of 0 the release of an inner lock: the depth alone.
func (e *Encoder) Extend(k *Keys, grant string, ttl time.Duration, depth int) *Call {
	return &Call{Script: Extend, Stamp: 5, Args: []any{
		Extend.sha, anyThree, k.lock, k.fence, e.admission, anyEmpty, grant, e.millis(ttl), depth, e.epoch,
	}}
}

// An Ending says what a release ends.
type Ending struct {
	// Grants are usually one; several where releases are owed, or after an import; none where only the waiter leaves.
	Grants []string
	// Ballot is the largest that was sent with the grants, where an ask may arrive after this release; else 0. It
	// becomes the fence where no grant was there.
	Ballot int64
	// Always: several ballots were sent, so it becomes the fence although a grant was there.
	Always bool
	// Waiter leaves the queue; nil for none. With Back it is put (back) into the queue: a roll-back of a caller that goes
	// on waiting. AskBallot is then the first ballot of the ask that is rolled back.
	Waiter    *Ticket
	Back      bool
	AskBallot int64
}

// Release encodes the end of grants, of a wait, or of both.
func (e *Encoder) Release(k *Keys, end Ending) *Call {
	ballot, always, waiter, rank, asked := anyZero, anyEmpty, anyEmpty, anyEmpty, anyZero
	if end.Ballot != 0 {
		ballot = end.Ballot
	}
	if end.Always {
		always = anyAlways
	}
	if end.Waiter != nil {
		waiter = end.Waiter.waiter
		if end.Back {
			rank, asked = end.Waiter.rank, end.AskBallot
		}
	}
	c := &call15{Call: Call{Script: Release}}
	c.Args = append(c.args[:0], Release.sha, anyFour, k.lock, k.fence, k.queue, k.waiters,
		ballot, always, waiter, rank, asked)
	for _, id := range end.Grants {
		c.Args = append(c.Args, id)
	}
	return &c.Call
}

// Inspect encodes the question who holds a name, and who waits for it.
func (e *Encoder) Inspect(k *Keys) *Call {
	return &Call{Script: Inspect, Args: []any{Inspect.sha, anyFour, k.lock, k.fence, k.queue, e.admission}}
}

// An AdmitStep is what an admit script does.
type AdmitStep string

// The steps of an admission. All but AdmitRead write; each needs the identity and the record that the caller saw, and
// never lowers a longest TTL, a quarantine or an epoch.
const (
	AdmitRead AdmitStep = "read"
	// AdmitStart starts a quarantine, AdmitEnd ends one that is over, AdmitNow admits without one.
	AdmitStart AdmitStep = "start"
	AdmitEnd   AdmitStep = "end"
	AdmitNow   AdmitStep = "now"
	// AdmitGuard and AdmitSettle raise the quarantine and the longest TTL, and change nothing else: the one for an
	// operator, the other for a program that has read larger numbers elsewhere.
	AdmitGuard  AdmitStep = "guard"
	AdmitSettle AdmitStep = "settle"
	// AdmitEpoch raises the epoch: N, Next, Epoch and Alone are written.
	AdmitEpoch AdmitStep = "epoch"
	// AdmitRewrite writes the identity anew where a backlog was freed, which is no change of it.
	AdmitRewrite AdmitStep = "rewrite"
)

// An AdmitRequest is one step of an admission, for one master.
type AdmitRequest struct {
	Step AdmitStep
	// Identity is the server's, and Seen its record, as the caller has read them; "" where there is no record.
	Identity, Seen string
	// Median is the masters' time in microseconds: their median, or the latest clock that is not far from it. A master
	// further from it than Tolerance starts and ends no quarantine.
	Median    int64
	Tolerance time.Duration
	// Record is what is to be written. Its Identity, Admitted, Since and Raised are the script's to say.
	Record Record
}

// Admit encodes one step of an admission.
func (e *Encoder) Admit(r AdmitRequest) *Call {
	return &Call{Script: Admit, Args: []any{
		Admit.sha, anyOne, e.admission, string(r.Step), r.Identity, r.Seen, r.Median, r.Tolerance.Microseconds(),
		r.Record.String(),
	}}
}

package scripts

import (
	"strconv"
	"time"
)

// An Encoder encodes the calls of one prefix and epoch. It is safe for concurrent use.
type Encoder struct{ admission, epoch any }

// NewEncoder makes an Encoder of a prefix, for a program whose configuration has this epoch.
func NewEncoder(p Prefix, epoch int64) *Encoder {
	return &Encoder{admission: p.Admission(), epoch: epoch}
}

// Millis converts a duration to whole milliseconds, rounded up: what a master keeps is never shorter than what was
// asked for.
func Millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// digits is a ballot in the sixteen digits that the scripts compare as text.
func digits(ballot int64) string {
	var room [20]byte
	b := strconv.AppendInt(room[:0], max(ballot, 0), 10)
	if len(b) >= timeDigits {
		return string(b)
	}
	return "0000000000000000"[len(b):] + string(b)
}

// LeaseText is the value of a lease in the hash of its lock.
func LeaseText(depth int, token, ballot int64) string {
	return strconv.Itoa(depth) + " " + digits(token) + " " + digits(ballot)
}

// acquire encodes what all modes have in common, and then what one mode adds.
func (e *Encoder) acquire(k *Keys, grant string, ttl time.Duration, first, last int64, more ...any) *Call {
	script := Acquire
	if k.role != Plain {
		script = SharedAcquire
	}
	c := &Call{Script: script, Stamp: 4}
	from := digits(first)
	to := from
	if last != first {
		to = digits(last)
	}
	c.Args = append(c.room[:0], script.SHA, "2", k.lock, e.admission, "", grant, Millis(ttl), from, to)
	c.Args = append(c.Args, more...)
	return c
}

// Acquire encodes an acquire with the ballots first to last. A refused caller with a ticket is in the queue afterwards;
// t is nil for one without.
func (e *Encoder) Acquire(k *Keys, grant string, ttl time.Duration, first, last int64, t *Ticket) *Call {
	if t == nil {
		return e.acquire(k, grant, ttl, first, last)
	}
	return e.acquire(k, grant, ttl, first, last, "acquire", t.waiter, t.rank)
}

// Repair encodes giving a grant back to a master that lost it: a fresh ballot, and the token that the grant was won
// with. The caller has the confirmation of a majority of the same round. previous is the grant that it has taken over
// and that a master may still have; "" for none.
func (e *Encoder) Repair(
	k *Keys, grant, previous string, ttl time.Duration, ballot, token int64, depth int,
) *Call {
	more := []any{"repair"}
	if k.role == Plain { // a share has no token and no depth there
		more = append(more, digits(token), depth)
	}
	if previous != "" {
		more = append(more, previous)
	}
	return e.acquire(k, grant, ttl, ballot, ballot, more...)
}

// Import encodes taking over the grant previous, where it stands, as grant. With the keys of a reader it is a
// downgrade: previous is the writer's.
func (e *Encoder) Import(k *Keys, grant, previous string, ttl time.Duration, first, last int64) *Call {
	mode := "import"
	if k.role != Plain {
		mode = "downgrade"
	}
	return e.acquire(k, grant, ttl, first, last, mode, previous)
}

// Extend encodes an extension, a re-entry, or with a TTL of 0 the release of an inner lock: the depth alone.
func (e *Encoder) Extend(k *Keys, grant string, ttl time.Duration, depth int) *Call {
	if k.role != Plain {
		return &Call{Script: SharedExtend, Stamp: 4, Args: []any{
			sharedExtendSHA, "2", k.lock, e.admission, "", grant, Millis(ttl), e.epoch,
		}}
	}
	return &Call{Script: Extend, Stamp: 4, Args: []any{
		extendSHA, "2", k.lock, e.admission, "", grant, Millis(ttl), depth, e.epoch,
	}}
}

// An Ending says what a release ends.
type Ending struct {
	// Grants are several where releases are owed, or after an import; none where only the waiter leaves.
	Grants []string
	// Ballot is the largest that was sent with the grants, where an ask may arrive after this release; else 0. It
	// becomes the fence.
	Ballot int64
	// Keep is for how long the grants stay nevertheless, rounded up; 0: they end now. It shortens, and never prolongs.
	// Shares end now.
	Keep time.Duration
	// Waiter leaves the queue; nil for none. With Back it is put (back) into the queue: a roll-back of a caller that goes
	// on waiting. AskBallot is then a ballot of the ask that is rolled back, or the masters' time: a waiter whose ask is
	// 20 s old counts no more.
	Waiter    *Ticket
	Back      bool
	AskBallot int64
}

// Release encodes the end of grants, of a wait, or of both.
func (e *Encoder) Release(k *Keys, end Ending) *Call {
	c := &Call{Script: Release}
	if k.role != Plain {
		c.Script = SharedRelease
	}
	c.Args = append(c.room[:0], c.Script.SHA, "1", k.lock)
	if len(end.Grants) > 0 {
		c.Args = append(c.Args, end.Grants[0])
	} else {
		c.Args = append(c.Args, "")
	}
	if end.Ballot == 0 && end.Keep == 0 && end.Waiter == nil && len(end.Grants) < 2 {
		return c
	}
	var waiter, rank, asked, ballot any = "", "", "0", "0"
	if end.Ballot > 0 {
		ballot = digits(end.Ballot)
	}
	if end.Waiter != nil {
		waiter = end.Waiter.waiter
		if end.Back {
			rank, asked = end.Waiter.rank, end.AskBallot
		}
	}
	c.Args = append(c.Args, ballot, Millis(end.Keep), waiter, rank, asked)
	for _, id := range end.Grants[min(1, len(end.Grants)):] {
		c.Args = append(c.Args, id)
	}
	return c
}

// Inspect encodes the question who holds a name, and who waits for it.
func (e *Encoder) Inspect(k *Keys) *Call {
	return &Call{Script: Inspect, Args: []any{inspectSHA, "2", k.lock, e.admission}}
}

// An AdmitStep is what an admit script does.
type AdmitStep string

// The steps of an admission. All but AdmitRead write; each needs the identity and the record that the caller saw, and
// never lowers a longest TTL, a quarantine or an epoch.
const (
	AdmitRead AdmitStep = "read"
	// AdmitStart starts a quarantine, AdmitReplace also if the record names other masters, AdmitEnd ends one that is over,
	// AdmitNow ends one that need not last.
	AdmitStart   AdmitStep = "start"
	AdmitReplace AdmitStep = "replace"
	AdmitEnd     AdmitStep = "end"
	AdmitNow     AdmitStep = "now"
	// AdmitGuard and AdmitSettle raise the quarantine and the longest TTL, and change nothing else: the one for an
	// operator, the other for a program that has read larger numbers elsewhere.
	AdmitGuard  AdmitStep = "guard"
	AdmitSettle AdmitStep = "settle"
	// AdmitEpoch raises the epoch: Masters, Next, Epoch and Alone are written.
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
	// Record is what is to be written. The script sets Identity, Admitted, Since and Raised. A record without a stamp gets
	// a new one.
	Record Record
}

// Admit encodes one step of an admission.
func (e *Encoder) Admit(r AdmitRequest) *Call {
	if r.Record.Stamp == "" && r.Step != AdmitRead {
		r.Record.Stamp = NewStamp()
	}
	return &Call{Script: Admit, Args: []any{
		admitSHA, "1", e.admission, string(r.Step), r.Identity, r.Seen, r.Median, r.Tolerance.Microseconds(),
		r.Record.String(),
	}}
}

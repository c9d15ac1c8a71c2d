package scripts

import (
	"math"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
)

// Acquire encodes an acquire with the ballots first to last. With the depth 1|Lingers, the lease may linger. If the
// acquire is refused, the master puts a caller with a ticket into the queue. t is nil for a caller without a ticket.
func (e *Encoder) Acquire(k *Keys, lease string, term Term, first, last int64, depth Depth, t *Ticket) *frame.Call {
	c := e.acquire(k, lease, term, first, first, last, depth, "")
	late := term.precedes(first)
	switch {
	case t != nil:
		c.Text("acquire")
		c.Text(t.waiter)
		c.Number(t.rank)
	case late:
		c.With("acquire", "", "0")
	}
	if late {
		c.Digits(term.Asked)
	}
	return c
}

// acquire encodes the arguments that all modes share.
func (e *Encoder) acquire(
	k *Keys, lease string, term Term, token, first, last int64, depth Depth, value Value,
) *frame.Call {
	c := e.onLock(k.script(Acquire, SlotAcquire, SharedAcquire), k)
	c.Text(lease)
	c.Number(term.life())
	c.Digits(first)
	c.Digits(last)
	if k.role == Plain {
		c.Text(LeaseText(depth, token, last, term.Until) + string(value))
	} else { // masters store no token and no depth of a share
		c.Digits(term.Until)
	}
	return c
}

// A Vote is the answer of one master to an acquire or an extension.
type Vote struct {
	Outcome quorum.Outcome
	// Left is the time until the name may become free. For Held, Left is the remaining TTL of the lock; if Free is set,
	// Left is the rest of the second that the first waiter has. For Missing, Left is the remaining TTL of another lease,
	// negative if the name is free, and the longest Duration if the key has no TTL.
	Left time.Duration
	// Free reports whether the name is free on this master but reserved for another waiter (Held). If Free is set and Left
	// is 0, the caller may try again immediately.
	Free bool
	// Holder is the id of the current lease, and Token the token with which it was won (Held and not Free).
	Holder string
	Token  int64
	// Lingers reports whether the current lease may have no holder (Held and not Free). The script has notified the owner
	// of the lease, which releases a lease without a holder.
	Lingers bool
	// Place is the caller's position in the queue, from 0; -1 if it is not in the queue (Held, Stale, Ahead).
	Place int
	// Fence is the largest ballot that this master has accepted or rejected (Held, Stale, Ahead, Missing).
	Fence int64
	// Time is the master's clock in microseconds; 0 if it is not in the reply (Granted).
	Time int64
	// Record is the master's admission record (Abstained, Refused); "" if it has none.
	Record string
	// Kind is the kind of the name, if that is not the kind of the call (OtherKind): see FieldKind.
	Kind string
}

// DecodeVote decodes the reply of an acquire or an extension. It returns an error for a reply that no script of this
// package returns; the caller then has no vote of that master.
func DecodeVote(reply any) (Vote, error) {
	if reply == any(int64(quorum.Granted)) {
		return Vote{Outcome: quorum.Granted, Place: -1}, nil
	}
	f := newFields(reply)
	vote := Vote{Outcome: quorum.Outcome(min(max(f.number(), 0), 255)), Place: -1}
	switch vote.Outcome {
	case quorum.Held:
		vote.Left, vote.Free = f.left(-1), f.number() == 1
		h := f.holding()
		vote.Holder, vote.Token, vote.Lingers = h.ID, h.Token, h.Lingers
		vote.Place, vote.Fence, vote.Time = int(f.number()), f.fence(), f.number()
	case quorum.Stale, quorum.Ahead:
		vote.Place, vote.Fence, vote.Time = int(f.number()), f.fence(), f.number()
	case quorum.Missing:
		vote.Left, vote.Fence, vote.Time = f.left(math.MaxInt64), f.fence(), f.number()
	case quorum.Abstained, quorum.Refused:
		vote.Record, vote.Time = f.text(), f.number()
	case quorum.OtherKind:
		vote.Kind, vote.Time = f.text(), f.number()
	default:
		f.fail("unexpected reply code %d", vote.Outcome)
	}
	if f.err != nil {
		return Vote{}, f.err
	}
	return vote, nil
}

// A Term says how long a lease lasts. A lease has expired for a request when it has expired by both clocks: TTL has
// passed on the master's own clock, and the time of the request is above Until. So one wrong clock, the master's or the
// client's, ends no lease early.
//
// The time of a request is its first ballot, or Asked if the ballot follows a fence that is ahead. Such a fence remains
// when clocks that were ahead have been set right: a ballot above it says nothing about the time.
type Term struct {
	TTL   time.Duration
	Until int64 // the client's estimate of the masters' time, not too early, plus the TTL; in microseconds
	Asked int64 // the client's estimate of the masters' time, not too late; 0: the first ballot
}

// Later returns the term with a deadline that is later by d.
func (term Term) Later(d time.Duration) Term {
	term.Until = min(term.Until+d.Microseconds(), MaxBallot)
	return term
}

// precedes reports whether the time of a request must be sent beside its first ballot.
func (term Term) precedes(first int64) bool {
	//mutant:fence-ahead = false
	return term.Asked > 0 && term.Asked < first
}

// life returns how long the keys of a name live, in milliseconds: for FenceKept longer than the lease, for the fence.
func (term Term) life() int64 {
	if term.TTL == 0 {
		return 0
	}
	return Millis(term.TTL) + Millis(FenceKept)
}

// LeaseText returns the text of a lease in the hash of its name.
func LeaseText(depth Depth, token, ballot, until int64) string {
	b := append(append(make([]byte, 0, 64), depth.String()...), ' ')
	b = append(frame.AppendDigits(b, token), ' ')
	b = append(frame.AppendDigits(b, ballot), ' ')
	return string(frame.AppendDigits(b, until))
}

// A Depth is the number of times that the holder has locked a lease. With the bit Lingers, the lease may be kept
// without a holder until another client tries to acquire the name.
type Depth int

// Lingers is the bit of a Depth that marks a lease which may linger.
const Lingers Depth = 1 << 30

// String returns the text of depth in a lease.
func (depth Depth) String() string {
	if depth&Lingers == 0 {
		return strconv.Itoa(int(depth))
	}
	return strconv.Itoa(int(depth&^Lingers)) + "~"
}

package scripts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
)

// A Vote is the answer of one master to an acquire or an extension.
type Vote struct {
	Outcome quorum.Outcome
	// Left is the time until the name may become free. For Held, Left is the remaining TTL of the lock, negative if the
	// key never expires; if Free is set, Left is the rest of the second that the first waiter has. For Missing, Left is
	// the remaining TTL of another lease, negative if the name is free.
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
	// Kind is the kind of the name, if that is not the kind of the call (OtherKind): see KindOf.
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

// A Holding is the state of a name on one master.
type Holding struct {
	ID    string // the id of the lease; "" if the name is free
	Depth int
	Token int64
	// Lingers reports whether the lease may have no holder. A lease without a holder is released when another client tries
	// to acquire the name.
	Lingers bool
	Value   string // value of the lease; "" with Version 0: the lease has no value
	Version int64
	Left    time.Duration // negative if the name is free, or the key never expires
	Fence   int64
	Time    int64 // microseconds

	Record  string   // the master's admission record, "" if it has none
	Waiters int      // the length of the queue
	First   []string // the ids of the first ten waiters, in order

	Kind   string  // the kind of the name; "" for plain locks, and for a name that no client has used lately
	Shares int     // number of unexpired shares of a readers-writer lock
	Some   []Share // up to a hundred unexpired shares, in the order of their expiry
}

// A Share is the part of a readers-writer lock that one lease holds: the lease of a reader or of the writer.
type Share struct {
	ID   string
	Left time.Duration
}

// DecodeHolding decodes the reply of an inspection.
func DecodeHolding(reply any) (Holding, error) {
	f := newFields(reply)
	h := f.holding()
	h.Left, h.Fence, h.Time = f.left(-1), f.fence(), f.number()
	h.Record, h.Waiters, h.First = f.text(), int(f.number()), f.texts()
	h.Shares = int(f.number())
	for list := f.texts(); len(list) > 1; list = list[2:] {
		ends := f.plain("end of a share", list[1])
		h.Some = append(h.Some, Share{list[0], time.Duration(max(0, ends-h.Time)) * time.Microsecond})
	}
	h.Kind = f.text()
	if f.err != nil {
		return Holding{}, f.err
	}
	return h, nil
}

// An Admission is the reply to a step of an admission.
type Admission struct {
	Result   AdmitResult
	Record   string // the admission record after the step
	Time     int64  // the master's clock, in microseconds
	Identity string // the identity of the server
	Expires  bool   // whether the record has a TTL, which another program has set
}

// An AdmitResult is the result of a step of an admission.
type AdmitResult int64

// The results, with the numbers that the script uses. The step was carried out only if the result is AdmitDone.
const (
	AdmitDone          AdmitResult = 1
	AdmitOtherIdentity AdmitResult = 2 // the identity differs from the caller's
	AdmitOtherRecord   AdmitResult = 3 // the record differs from the one that the caller saw
	AdmitClockDiffers  AdmitResult = 4 // the master's clock is too far from the median
	AdmitTooEarly      AdmitResult = 5 // the quarantine has not ended, or this step cannot change such a record
	AdmitOtherMasters  AdmitResult = 6 // the record names another shard or other masters
)

// DecodeAdmission decodes the reply to a step of an admission.
func DecodeAdmission(reply any) (Admission, error) {
	f := newFields(reply)
	a := Admission{Result: AdmitResult(f.number()), Record: f.text(), Time: f.number(), Identity: f.text(),
		Expires: f.number() >= 0}
	if a.Result < AdmitDone || a.Result > AdmitOtherMasters {
		f.fail("unexpected reply code %d", a.Result)
	}
	return a, f.err
}

// fields reads the elements of an array reply in order and keeps the first error.
type fields struct {
	rest []any
	err  error
}

func newFields(reply any) *fields {
	f := &fields{}
	var ok bool
	if f.rest, ok = reply.([]any); !ok {
		f.fail("unexpected reply %.40v of type %T", reply, reply)
	}
	return f
}

func (f *fields) next() (v any) {
	if len(f.rest) == 0 {
		f.fail("the reply has too few elements")
		return nil
	}
	v, f.rest = f.rest[0], f.rest[1:]
	return v
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) number() int64 {
	v := f.next()
	n, ok := v.(int64)
	if !ok {
		f.fail("unexpected %T instead of a number", v)
	}
	return n
}

func (f *fields) text() string {
	switch v := f.next().(type) {
	case []byte:
		return string(v)
	case string:
		return v
	default:
		f.fail("unexpected %T instead of a string", v)
		return ""
	}
}

// holding reads the field of a lease: its id, and "depth token ballot until", perhaps with " version value". It returns
// the zero Holding if the name is free. A hash that was not written by the scripts may contain anything.
func (f *fields) holding() (h Holding) {
	list := f.texts()
	if len(list) < 2 {
		return h
	}
	words := append(strings.SplitN(list[1], " ", 6), "", "", "", "", "")
	words[0], h.Lingers = strings.CutSuffix(words[0], "~")
	number := func(i int, what string) int64 {
		if words[i] == "" {
			return 0
		}
		return f.plain(what, words[i])
	}
	h.ID, h.Depth, h.Token = list[0], int(number(0, "depth")), number(1, "token")
	h.Version, h.Value = number(4, "version of the value"), words[5]
	return h
}

// texts reads a list of texts.
func (f *fields) texts() (list []string) {
	inner := newFields(f.next())
	for range inner.rest {
		list = append(list, inner.text())
	}
	if inner.err != nil {
		f.fail("%w", inner.err)
	}
	return list
}

// fence reads a fence, which is a decimal text.
func (f *fields) fence() int64 { return f.plain("fence", f.text()) }

// plain reads a decimal text. Any other text is an error, because the caller could take a zero in its place for a
// valid number.
func (f *fields) plain(what, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		f.fail("the %s %.40q is not a decimal number", what, text)
	}
	return n
}

// left reads the remaining milliseconds of a key, as PTTL returns them. It returns never if the key never expires (-1),
// and -1 if the key does not exist (-2). The result is bounded, since a TTL may be too large for a time.Duration.
func (f *fields) left(never time.Duration) time.Duration {
	switch n := f.number(); {
	case n == -1:
		return never
	case n < 0:
		return -1
	default:
		return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

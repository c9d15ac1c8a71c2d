package scripts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Kind says what one master answered.
type Kind uint8

// The kinds of votes, with the numbers that the scripts use. Failed is never sent by a script: no reply, or an error.
const (
	Failed    Kind = 0
	Granted   Kind = 1
	Held      Kind = 2
	Stale     Kind = 3
	Ahead     Kind = 4
	Missing   Kind = 5
	Abstained Kind = 6
	Refused   Kind = 7
)

var kindNames = [...]string{"failed", "granted", "held", "stale", "ahead", "missing", "abstained", "refused"}

// String returns the word for k that errors and traces use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// A Vote is the answer of one master to an acquire or an extension.
type Vote struct {
	Kind Kind
	// Left is how long it may last until the name can be taken. Held: what is left to the lock, negative where the key
	// never expires; where the name is free, what is left of the told waiter's second. Missing: what is left to another's
	// grant, negative where the name is free.
	Left time.Duration
	// Free: the name is free here, and another waiter is first (Held). A Left of 0 then means "ask again at once".
	Free bool
	// Holder is the id of the grant that is there, Token the one it was won with (Held and not Free).
	Holder string
	Token  int64
	// Place is the caller's in the queue, from 0; -1 where it is not in it (Held, Stale, Ahead).
	Place int
	// Fence is the largest ballot that this master has accepted or been told is dead (Held, Stale, Ahead, Missing).
	Fence int64
	// Time is the master's own time in microseconds; 0 where it was not told (Granted).
	Time int64
	// Record is the master's admission record (Abstained, Refused); "" where it has none.
	Record string
}

// DecodeVote reads the reply of an acquire or an extension. A reply that no script of ours gives is an error; it
// costs the master's vote and nothing else.
func DecodeVote(reply any) (Vote, error) {
	if reply == any(int64(Granted)) {
		return Vote{Kind: Granted, Place: -1}, nil
	}
	f := newFields(reply)
	v := Vote{Kind: Kind(min(max(f.number(), 0), 255)), Place: -1}
	switch v.Kind {
	case Held:
		v.Left, v.Free = f.left(-1), f.number() == 1
		v.Holder, _, v.Token = f.grant()
		v.Place, v.Fence, v.Time = int(f.number()), f.fence(), f.number()
	case Stale, Ahead:
		v.Place, v.Fence, v.Time = int(f.number()), f.fence(), f.number()
	case Missing:
		v.Left, v.Fence, v.Time = f.left(math.MaxInt64), f.fence(), f.number()
	case Abstained, Refused:
		v.Record, v.Time = f.text(), f.number()
	default:
		f.fail("unexpected reply code %d", v.Kind)
	}
	if f.err != nil {
		return Vote{}, f.err
	}
	return v, nil
}

// DecodeReleased reads the reply of a release: whether a grant was there.
func DecodeReleased(reply any) (bool, error) {
	if n, ok := reply.(int64); ok && (n == 0 || n == 1) {
		return n == 1, nil
	}
	return false, fmt.Errorf("unexpected reply %.40v to a release", reply)
}

// A Holding is what one master says of a name.
type Holding struct {
	ID    string // of the grant; "" where the name is free
	Depth int
	Token int64
	Left  time.Duration // negative where the name is free, or the key never expires
	Fence int64
	Time  int64 // microseconds

	Record  string   // the master's admission record, "" where it has none
	Waiters int      // the length of the queue
	First   []string // the ids of the first ten in it, in their order

	Shares int     // of a lock with readers: how many count
	Some   []Share // the first hundred of them to end, by their ends
}

// A Share is a grant of a lock with readers: a reader's, or that of the writer.
type Share struct {
	ID   string
	Left time.Duration
}

// DecodeHolding reads the reply of an inspection.
func DecodeHolding(reply any) (Holding, error) {
	f, h := newFields(reply), Holding{}
	h.ID, h.Depth, h.Token = f.grant()
	h.Left, h.Fence, h.Time = f.left(-1), f.fence(), f.number()
	h.Record, h.Waiters, h.First = f.text(), int(f.number()), f.texts()
	h.Shares = int(f.number())
	for list := f.texts(); len(list) > 1; list = list[2:] {
		ends := f.plain("end of a share", list[1])
		h.Some = append(h.Some, Share{list[0], time.Duration(max(0, ends-h.Time)) * time.Microsecond})
	}
	if f.err != nil {
		return Holding{}, f.err
	}
	return h, nil
}

// An Admission is the answer to a step of an admission.
type Admission struct {
	Result   AdmitResult
	Record   string // as it now stands
	Time     int64  // the master's, in microseconds
	Identity string // the master's own
}

// An AdmitResult says whether a step of an admission was taken.
type AdmitResult int64

// The results, with the numbers that the script uses. Only AdmitDone has written, or read.
const (
	AdmitDone          AdmitResult = 1
	AdmitOtherIdentity AdmitResult = 2 // the identity is another than the caller's
	AdmitOtherRecord   AdmitResult = 3 // the record is another than the one that the caller saw
	AdmitClockDiffers  AdmitResult = 4 // the master's clock is too far from the median
	AdmitTooEarly      AdmitResult = 5 // the quarantine is not over, or this step cannot change such a record
	AdmitOtherMasters  AdmitResult = 6 // the record names other masters
)

// DecodeAdmission reads the reply to a step of an admission.
func DecodeAdmission(reply any) (Admission, error) {
	f := newFields(reply)
	a := Admission{Result: AdmitResult(f.number()), Record: f.text(), Time: f.number(), Identity: f.text()}
	if a.Result < AdmitDone || a.Result > AdmitOtherMasters {
		f.fail("unexpected reply code %d", a.Result)
	}
	return a, f.err
}

// fields reads the elements of an array reply one after the other and keeps the first error.
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
		f.fail("the reply is too short")
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
		f.fail("unexpected %T in the place of a number", v)
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
		f.fail("unexpected %T in the place of a text", v)
		return ""
	}
}

// grant reads the field of a lock: the lease's id, and its depth, token and ballot. There is none if the name is free.
// The field of a hash that is not ours has any value.
func (f *fields) grant() (id string, depth int, token int64) {
	list := f.texts()
	if len(list) < 2 {
		return "", 0, 0
	}
	values := strings.Fields(list[1])
	for i, v := range values[:min(2, len(values))] {
		n := f.plain([]string{"depth", "token"}[i], v)
		if i == 0 {
			depth = int(n)
		} else {
			token = n
		}
	}
	return list[0], depth, token
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

// plain reads a decimal text. One that is not a plain number is an error of that master, never zero.
func (f *fields) plain(what, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		f.fail("the %s %.40q is not a plain number", what, s)
	}
	return n
}

// left reads the milliseconds that a key has left, as PTTL tells them: -1 where it never expires, less where it is not
// there. It is bounded, since somebody may have given a key more time than a Duration holds.
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

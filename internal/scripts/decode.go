package scripts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
	Left    time.Duration // negative if the name is free
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

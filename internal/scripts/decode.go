package scripts

import (
	"errors"
	"fmt"
	"math"
	"strconv"
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
	// Left is how long another's hold still lives on this master (Held, Missing); negative where there is none, or
	// where the key never expires.
	Left time.Duration
	// Holder is the id of the hold that refuses, or the waiter for whom the name is kept; "" where it is free and other
	// waiters are first (Held). Place is the caller's in the queue, from 0; -1 where it is not in it.
	Holder string
	Place  int
	// Bar is the largest ballot that this master has accepted (Held, Stale, Ahead, Missing).
	Bar int64
	// Time is the master's own time in microseconds; 0 where it was not told (Granted).
	Time int64
	// Marker is the master's marker (Abstained, Refused); "" where it has none.
	Marker string
}

// MaxBallot bounds every ballot: Lua's numbers are exact only below 2^53.
const MaxBallot = 1<<53 - 1

// DecodeVote reads the reply of an acquire or an extension. A reply that no script of ours gives is an error; it
// costs the master's vote and nothing else.
func DecodeVote(reply any) (Vote, error) {
	if n, ok := reply.(int64); ok {
		if n == int64(Granted) {
			return Vote{Kind: Granted}, nil
		}
		return Vote{}, fmt.Errorf("unexpected reply %d", n)
	}
	f, err := newFields(reply)
	if err != nil {
		return Vote{}, err
	}
	v := Vote{Kind: Kind(min(max(f.number(), 0), 255))}
	switch v.Kind {
	case Held:
		v.Left, v.Bar, v.Time, v.Holder, v.Place = f.millis(), f.ballot(), f.number(), f.text(), int(f.number())
	case Stale, Ahead:
		v.Bar, v.Time = f.ballot(), f.number()
	case Missing:
		v.Bar, v.Time, v.Left = f.ballot(), f.number(), f.millis()
	case Abstained, Refused:
		v.Marker, v.Time = f.text(), f.number()
	default:
		return Vote{}, fmt.Errorf("unexpected reply code %d", v.Kind)
	}
	return v, f.err
}

// DecodeMany reads the reply to the extension of n holds: for each whether it is there, and was prolonged. It is nil where
// the master refuses all of them.
func DecodeMany(reply any, n int) (present []bool, err error) {
	text, ok := reply.([]byte)
	if !ok {
		v, err := DecodeVote(reply)
		if err == nil && v.Kind != Refused {
			err = fmt.Errorf("unexpected reply code %d", v.Kind)
		}
		return nil, err
	}
	if len(text) != n {
		return nil, fmt.Errorf("unexpected reply %.40q to the extension of %d holds", text, n)
	}
	present = make([]bool, n)
	for i, c := range text {
		if c != '1' && c != '5' {
			return nil, fmt.Errorf("unexpected reply %.40q to the extension of %d holds", text, n)
		}
		present[i] = c == '1'
	}
	return present, nil
}

// DecodeReleased reads the reply of a release: whether the hold was present.
func DecodeReleased(reply any) (bool, error) {
	if n, ok := reply.(int64); ok && (n == 0 || n == 1) {
		return n == 1, nil
	}
	return false, fmt.Errorf("unexpected reply %.40v to a release", reply)
}

// A Holding is what one master says of a name.
type Holding struct {
	ID    string // "" where the name is free
	Depth int
	Left  time.Duration // negative where free
	Bar   int64
	Time  int64 // microseconds
	// Marker is the master's marker, "" where it has none.
	Marker string
}

// DecodeHolding reads the reply of an inspection.
func DecodeHolding(reply any) (Holding, error) {
	f, err := newFields(reply)
	if err != nil {
		return Holding{}, err
	}
	h := Holding{ID: f.text(), Depth: int(f.decimal()), Left: f.millis(), Bar: f.ballot(), Time: f.number(), Marker: f.text()}
	return h, f.err
}

// An Admission is the answer to a step of an admission.
type Admission struct {
	// Result says whether the step was taken, and if not, why.
	Result AdmitResult
	// Marker is the marker as it now stands, Time the master's time in microseconds, Identity the master's own.
	Marker   string
	Time     int64
	Identity string
}

// An AdmitResult says whether a step of an admission was taken.
type AdmitResult int64

// The results, with the numbers that the script uses.
const (
	AdmitDone          AdmitResult = 1
	AdmitOtherIdentity AdmitResult = 2
	AdmitOtherMarker   AdmitResult = 3
	AdmitClockDiffers  AdmitResult = 4
	AdmitTooEarly      AdmitResult = 5
)

// DecodeAdmission reads the reply to a step of an admission.
func DecodeAdmission(reply any) (Admission, error) {
	f, err := newFields(reply)
	if err != nil {
		return Admission{}, err
	}
	a := Admission{Result: AdmitResult(f.number()), Marker: f.text(), Time: f.number(), Identity: f.text()}
	if f.err == nil && (a.Result < AdmitDone || a.Result > AdmitTooEarly) {
		return Admission{}, fmt.Errorf("unexpected reply code %d", a.Result)
	}
	return a, f.err
}

// fields reads the elements of an array reply one after the other and keeps the first error.
type fields struct {
	rest []any
	err  error
}

var errShort = errors.New("the reply is too short")

func newFields(reply any) (fields, error) {
	list, ok := reply.([]any)
	if !ok {
		return fields{}, fmt.Errorf("unexpected reply of type %T", reply)
	}
	return fields{rest: list}, nil
}

func (f *fields) next() any {
	if len(f.rest) == 0 {
		if f.err == nil {
			f.err = errShort
		}
		return nil
	}
	v := f.rest[0]
	f.rest = f.rest[1:]
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

func (f *fields) decimal() int64 {
	s := f.text()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && f.err == nil {
		f.fail("%.40q is not a number", s)
	}
	return n
}

// ballot reads a bar, which is a decimal text. One that is not a plain number is an error of that master, never zero.
func (f *fields) ballot() int64 {
	s := f.text()
	n, err := strconv.ParseInt(s, 10, 64)
	if (err != nil || n < 0) && f.err == nil {
		f.fail("the bar %.40q is not a plain number", s)
	}
	return n
}

// millis bounds what it reads: somebody may have given a key more time than a Duration holds.
func (f *fields) millis() time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(f.number(), -most), most)) * time.Millisecond
}

package scripts

import "time"

// A Mode says what an acquire is for.
type Mode string

// The modes of [AcquireCall]. Only ModeAcquire needs an admitted master; the others follow a confirmed majority, or
// count only where the hold is present.
const (
	ModeAcquire Mode = "a"
	ModeHeal    Mode = "h"
	ModeImport  Mode = "i"
)

// boxed values that most calls share
var (
	anyEmpty  any = ""
	anyOne    any = "1"
	anyZero   any = "0"
	anyOneKey any = "1"
	anyTwo    any = "2"
	anyThree  any = "3"

	anyMode = map[Mode]any{ModeAcquire: "a", ModeHeal: "h", ModeImport: "i"}
)

// A Fleet is what all clients of a prefix agree on, and what every call therefore carries.
type Fleet struct {
	marker any // key of the marker
	window any // in us
	barTTL any // in ms
	epoch  any
}

// NewFleet boxes what all calls of a Locker share. window is how far a ballot may be from a master's time, barTTL how
// long a bar is remembered.
func NewFleet(p Prefix, window, barTTL time.Duration, epoch int64) Fleet {
	return Fleet{marker: p.Marker(), window: window.Microseconds(), barTTL: Millis(barTTL), epoch: epoch}
}

// Millis converts a duration to whole milliseconds, rounded up: what a master keeps is never shorter than what was
// asked for.
func Millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// A Hold names one hold towards the masters. It is boxed once and used in each of its calls.
type Hold struct {
	Keys Keys
	// ID is the id of the hold; Previous that of the hold which an import replaces.
	ID, Previous string

	id any
}

// NewHold returns the hold id of a name.
func NewHold(k Keys, id, previous string) Hold {
	return Hold{Keys: k, ID: id, Previous: previous, id: id}
}

// AcquireCall encodes an acquire. The block of ballots is first..last; both are the same where no block is reserved.
func (f Fleet) AcquireCall(h Hold, mode Mode, ttl time.Duration, first, last int64, depth int) *Call {
	var firstAny any = first
	lastAny := firstAny
	if last != first {
		lastAny = last
	}
	prev := anyEmpty
	if h.Previous != "" {
		prev = h.Previous
	}
	return &Call{Script: Acquire, Stamp: 5, Args: []any{
		Acquire.sha, anyThree, h.Keys.lock, h.Keys.bar, f.marker,
		anyEmpty, h.id, Millis(ttl), firstAny, lastAny, f.window, f.barTTL, depth, anyMode[mode], prev, f.epoch,
	}}
}

// ExtendCall encodes an extension, a re-entry, or with a ttl of 0 the release of an inner lock.
func (f Fleet) ExtendCall(h Hold, ttl time.Duration, depth int) *Call {
	return &Call{Script: Extend, Stamp: 5, Args: []any{
		Extend.sha, anyThree, h.Keys.lock, h.Keys.bar, f.marker, anyEmpty, h.id, Millis(ttl), depth, f.epoch,
	}}
}

// ReleaseCall encodes the end of a hold. ballot is the largest that the hold has sent, several whether it has sent more
// than one.
func (f Fleet) ReleaseCall(h Hold, ballot int64, several bool) *Call {
	args := make([]any, 4, 11)
	args[0], args[1], args[2], args[3] = Release.sha, anyTwo, h.Keys.lock, h.Keys.bar
	many := anyZero
	if several {
		many = anyOne
	}
	args = append(args, ballot, many, f.window, f.barTTL, h.Keys.channel, h.id)
	if h.Previous != "" {
		args = append(args, h.Previous)
	}
	return &Call{Script: Release, Args: args}
}

// DebtCall encodes the end of several holds of one name at once.
func (f Fleet) DebtCall(k Keys, ids []string, ballot int64) *Call {
	args := []any{Release.sha, anyTwo, k.lock, k.bar, ballot, anyOne, f.window, f.barTTL, k.channel}
	for _, id := range ids {
		args = append(args, id)
	}
	return &Call{Script: Release, Args: args}
}

// InspectCall encodes the question who holds a name.
func (f Fleet) InspectCall(k Keys) *Call {
	return &Call{Script: Inspect, Args: []any{Inspect.sha, anyThree, k.lock, k.bar, f.marker}}
}

// AdmitRequest is what [Fleet.AdmitCall] asks of one master.
type AdmitRequest struct {
	Step     AdmitStep
	Identity string
	// Seen is the marker that the caller compared with, as it stood there; "" for none.
	Seen string
	// Median is the median of the masters' times in microseconds, Tolerance how far this master may be from it.
	Median    int64
	Tolerance time.Duration
	// Quarantine is how long a started quarantine lasts; Guard and Epoch go into the marker.
	Quarantine, Guard time.Duration
	Epoch             int64
}

// An AdmitStep is what an admit script does.
type AdmitStep string

// The steps of an admission.
const (
	AdmitRead  AdmitStep = "read"
	AdmitStart AdmitStep = "start"
	AdmitEnd   AdmitStep = "end"
	AdmitNow   AdmitStep = "now"
)

// AdmitCall encodes one step of an admission.
func (f Fleet) AdmitCall(r AdmitRequest) *Call {
	return &Call{Script: Admit, Args: []any{
		Admit.sha, anyOneKey, f.marker, string(r.Step), r.Identity, r.Seen, r.Median, r.Tolerance.Microseconds(),
		r.Quarantine.Microseconds(), Millis(r.Guard), r.Epoch,
	}}
}

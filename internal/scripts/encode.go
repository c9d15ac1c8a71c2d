package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

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
	anyThree  any = "3"
	anyFive   any = "5"
)

// The times that most fleets have. The scripts know them, so that a call need not carry them.
const (
	UsualWindow = 15 * time.Second
	UsualBarTTL = time.Hour
)

// A Fleet is what all clients of a prefix agree on, and what every call therefore carries.
type Fleet struct {
	marker  any // key of the marker
	window  any // in us
	barTTL  any // in ms
	epoch   any
	rests   map[Mode]any // argument 5 of an acquire whose depth is 1
	endings endings
}

// endings are what argument 4 of a release can be.
type endings map[Next]*[2]any

// newEndings boxes them; times is the window, the TTL of bars and the reservation, "" where they are usual.
func newEndings(times string) endings {
	e := endings{}
	for _, next := range []Next{Nothing, Tell, Reserve, Advance, leave} {
		e[next] = &[2]any{string(next) + times, string(next) + "+" + times}
	}
	return e
}

var (
	usualEndings = newEndings("")
	usualEnding  = usualEndings[Advance][0] // which a release need not carry
)

// Reservation is for how long, at the least, a name that was released is kept for the waiter who is told so: longer than
// a message and an acquire need, and what a waiter that hangs costs the others.
const Reservation = 500 * time.Millisecond

// WaiterTTL is for how long a queued waiter counts on a master that does not hear of it again. The acquire script knows it.
const WaiterTTL = 20 * time.Second

// A Next says what a release does for the first waiter.
type Next string

// The values of Next.
const (
	Nothing Next = "N" // for one that others hold
	Tell    Next = "F" // tells it that the name is free on this master
	Reserve Next = "R" // writes its hold, or keeps the name for it, and tells it
	Advance Next = "A" // the same, also where nothing was released but the name is free

	leave Next = "L" // as Reserve, for a waiter that leaves
)

// A Ticket is a waiter's place among all: first by Priority, the higher first, then by its time.
type Ticket struct {
	waiter, rank any
	text         string
}

// NewTicket makes the ticket of the waiter with a number of its own in its Locker, which has this id. at is the masters'
// time in microseconds.
func NewTicket(locker string, number uint64, at int64, priority int) *Ticket {
	text := fmt.Sprintf(">%016d:%s:%d", max(at, 0), locker, number)
	return &Ticket{waiter: text, rank: -priority, text: text}
}

// String returns the waiter as the masters know it.
func (t *Ticket) String() string { return t.text }

// IsReservation reports whether what a master calls a holder is a waiter for whom the name is kept.
func IsReservation(holder string) bool { return strings.HasPrefix(holder, ">") }

// NewFleet boxes what all calls of a Locker share. window is how far a ballot may be from a master's time, barTTL how
// long a bar is remembered.
func NewFleet(p Prefix, window, barTTL time.Duration, epoch int64) Fleet {
	f := Fleet{marker: p.Marker(), window: window.Microseconds(), barTTL: Millis(barTTL), epoch: epoch}
	times := anyEmpty
	if window != UsualWindow || barTTL != UsualBarTTL {
		times = fmt.Sprint(f.window, " ", f.barTTL)
	}
	f.rests = map[Mode]any{ModeAcquire: times, ModeHeal: f.rest(ModeHeal, 1), ModeImport: f.rest(ModeImport, 1)}
	return f.Reserving(Reservation)
}

// rest is argument 5 of an acquire, of any mode and depth.
func (f *Fleet) rest(mode Mode, depth int) any {
	return fmt.Sprint(f.window, " ", f.barTTL, " ", string(mode), " ", depth, " ", f.epoch)
}

// Reserving returns f with another time for which its releases keep a name for the waiter that they tell.
func (f Fleet) Reserving(d time.Duration) Fleet {
	f.endings = usualEndings
	if d != Reservation || f.rests[ModeAcquire] != anyEmpty {
		f.endings = newEndings(fmt.Sprint(" ", f.window, " ", f.barTTL, " ", Millis(d)))
	}
	return f
}

// Millis converts a duration to whole milliseconds, rounded up: what a master keeps is never shorter than what was
// asked for.
func Millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// boxed is a number of milliseconds as an argument.
type boxed struct {
	n   int64
	any any
}

// lastTTL is what boxedMillis has boxed last: nearly all calls of a program have the same TTL.
var lastTTL atomic.Pointer[boxed]

// boxedMillis is Millis that does not allocate where it is asked for the same again.
func boxedMillis(d time.Duration) any {
	n := Millis(d)
	if b := lastTTL.Load(); b != nil && b.n == n {
		return b.any
	}
	b := &boxed{n, n}
	lastTTL.Store(b)
	return b.any
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
	rest := f.rests[mode]
	if depth != 1 {
		rest = f.rest(mode, depth)
	}
	c := &struct { // one piece of memory for both
		Call
		args [12]any
	}{
		Call: Call{Script: Acquire, Stamp: 5},
		args: [12]any{Acquire.sha, anyThree, h.Keys.lock, h.Keys.bar, f.marker, anyEmpty, h.id, boxedMillis(ttl), firstAny, rest, lastAny},
	}
	switch { // what is as the script takes it to be is left out at the end
	case h.Previous != "":
		c.args[11] = h.Previous
		c.Args = c.args[:]
	case last != first:
		c.Args = c.args[:11]
	case rest != anyEmpty:
		c.Args = c.args[:10]
	default:
		c.Args = c.args[:9]
	}
	return &c.Call
}

// QueueCall encodes the acquire of a waiter with a ticket: where it is refused it is queued, and it takes up what is
// reserved for it. In turn, it does not take a free name while another is first. For as long as offer, which is rounded
// down to milliseconds, a release may write the hold; 0 is never.
func (f Fleet) QueueCall(h Hold, t *Ticket, inTurn bool, ttl, offer time.Duration, first, last int64) *Call {
	var firstAny any = first
	lastAny := firstAny
	if last != first {
		lastAny = last
	}
	turn := anyZero
	if inTurn {
		turn = anyOne
	}
	stands := anyZero
	if offer >= time.Millisecond {
		stands = offer.Milliseconds()
	}
	c := &struct { // one piece of memory for both
		Call
		args [17]any
	}{
		Call: Call{Script: Acquire, Stamp: 7},
		args: [17]any{
			Acquire.sha, anyFive, h.Keys.lock, h.Keys.bar, f.marker, h.Keys.queue, h.Keys.alive,
			anyEmpty, h.id, boxedMillis(ttl), firstAny, f.rests[ModeAcquire], lastAny, t.waiter, t.rank, turn, stands,
		},
	}
	c.Args = c.args[:]
	return &c.Call
}

// ExtendCall encodes an extension, a re-entry, or with a ttl of 0 the release of an inner lock.
func (f Fleet) ExtendCall(h Hold, ttl time.Duration, depth int) *Call {
	return &Call{Script: Extend, Stamp: 5, Args: []any{
		Extend.sha, anyThree, h.Keys.lock, h.Keys.bar, f.marker, anyEmpty, h.id, Millis(ttl), depth, f.epoch,
	}}
}

// A ManyHold is one hold of those that are extended together: it is number Number of its Locker.
type ManyHold struct {
	Name   string
	Number uint64
	Depth  int
}

// AppendID appends the id of a hold to b.
func AppendID(b []byte, locker string, number uint64) []byte {
	return strconv.AppendUint(append(append(b, locker...), ':'), number, 10)
}

// ExtendManyCall encodes the extension of several holds of one Locker, of different names. All texts are cut from one.
func (f Fleet) ExtendManyCall(p Prefix, locker string, holds []ManyHold, ttl time.Duration) *Call {
	size := 0
	for i := range holds {
		size += len(p) + len(":{") + len(holds[i].Name) + len("}:lock") + len(locker) + len(":") + 20
	}
	text, ends := make([]byte, 0, size), make([]int, 0, 2*len(holds))
	for i := range holds {
		text = append(append(append(append(text, p...), ":{"...), holds[i].Name...), "}:lock"...)
		ends = append(ends, len(text))
		text = AppendID(text, locker, holds[i].Number)
		ends = append(ends, len(text))
	}
	all := string(text)
	args := append(make([]any, 0, 6+3*len(holds)), ExtendMany.sha, 1+len(holds), f.marker)
	at := 0
	for i := range holds {
		args = append(args, all[at:ends[2*i]])
		at = ends[2*i+1]
	}
	c := &Call{Script: ExtendMany, Stamp: len(args)}
	args = append(args, anyEmpty, boxedMillis(ttl), f.epoch)
	for i := range holds {
		args = append(args, all[ends[2*i]:ends[2*i+1]], holds[i].Depth)
	}
	c.Args = args
	return c
}

// ReleaseCall encodes the end of a hold. ballot is the largest that the hold has sent, several whether it has sent more
// than one; next is what the first waiter gets.
func (f Fleet) ReleaseCall(h Hold, ballot int64, several bool, next Next) *Call {
	if h.Previous != "" {
		return f.releaseCall(h.Keys, h.id, ballot, several, next, h.Previous)
	}
	return f.releaseCall(h.Keys, h.id, ballot, several, next)
}

// releaseCall encodes a release of one id, and of more.
func (f Fleet) releaseCall(k Keys, id any, ballot int64, several bool, next Next, more ...any) *Call {
	largest, many := anyZero, 0
	if ballot != 0 {
		largest = ballot
	}
	if several {
		many = 1
	}
	c := &struct { // one piece of memory for both
		Call
		args [12]any
	}{
		Call: Call{Script: Release, Stamp: 7},
		args: [12]any{Release.sha, anyFive, k.lock, k.bar, k.queue, k.alive, f.marker, anyEmpty, id, largest},
	}
	c.Args = c.args[:10]
	if ending := f.endings[next][many]; ending != usualEnding || len(more) > 0 {
		c.Args = append(append(c.Args, ending), more...)
	}
	return &c.Call
}

// LeaveCall encodes that a waiter waits no more: it leaves the queue, and what is reserved for it goes to the next.
func (f Fleet) LeaveCall(k Keys, waiter string) *Call {
	return f.releaseCall(k, waiter, 0, false, leave)
}

// ResignCall is LeaveCall of one that has offered the hold: what was written of it goes to the next, too, and it is barred up
// to the largest ballot that it has sent.
func (f Fleet) ResignCall(h Hold, ballot int64, waiter string) *Call {
	return f.releaseCall(h.Keys, h.id, ballot, true, leave, waiter)
}

// AdvanceCall encodes that a name which is free goes to the first waiter.
func (f Fleet) AdvanceCall(k Keys) *Call { return f.releaseCall(k, anyEmpty, 0, false, Advance) }

// FreeCall encodes the end of all holds of a name, as if their holders had released them, and is AdvanceCall where there
// are none.
func (f Fleet) FreeCall(k Keys, ids []string) *Call { return f.manyCall(k, ids, 0, false, Advance) }

// DebtCall encodes the end of several holds of one name at once. It has no stamp: it may be paid on any connection.
func (f Fleet) DebtCall(k Keys, ids []string, ballot int64) *Call {
	c := f.manyCall(k, ids, ballot, true, Tell)
	c.Stamp = 0
	return c
}

func (f Fleet) manyCall(k Keys, ids []string, ballot int64, several bool, next Next) *Call {
	if len(ids) == 0 {
		return f.releaseCall(k, anyEmpty, ballot, several, next)
	}
	more := make([]any, 0, len(ids)-1)
	for _, id := range ids[1:] {
		more = append(more, id)
	}
	return f.releaseCall(k, ids[0], ballot, several, next, more...)
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
	// Alone is the largest epoch whose set may act alone; it goes into the marker where Epoch is above 0.
	Alone int64
	// Home is the address of a master that remembers every write, by its operator's word; see [Home].
	Home string
}

// An AdmitStep is what an admit script does.
type AdmitStep string

// The steps of an admission.
const (
	AdmitRead  AdmitStep = "read"
	AdmitStart AdmitStep = "start"
	AdmitEnd   AdmitStep = "end"
	AdmitNow   AdmitStep = "now"
	// AdmitGuard sets the guard time in the marker of a master, whether it is admitted or in quarantine.
	AdmitGuard AdmitStep = "guard"
	// AdmitEpoch raises the epoch in the marker, and sets what may act alone.
	AdmitEpoch AdmitStep = "epoch"
)

// AdmitCall encodes one step of an admission.
func (f Fleet) AdmitCall(r AdmitRequest) *Call {
	return &Call{Script: Admit, Args: []any{
		Admit.sha, anyOneKey, f.marker, string(r.Step), r.Identity, r.Seen, r.Median, r.Tolerance.Microseconds(),
		r.Quarantine.Microseconds(), Millis(r.Guard), r.Epoch, r.Home, r.Alone,
	}}
}

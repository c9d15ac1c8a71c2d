package scripts_test

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

// handing is a name that passes from its holder to one of those who wait, with what may keep a release from writing the
// hold of the first of them.
func (w *twin) handing() {
	name := w.name()
	for _, key := range []string{prefix.Lock(name), prefix.Bar(name), prefix.Queue(name), prefix.Alive(name)} {
		w.must("DEL", key)
		w.state.Delete(w.now(), key)
	}
	marker := scripts.Marker{Identity: w.env.Identity(), Guard: guard}.String()
	w.must("SET", prefix.Marker(), marker)
	w.state.Set(w.now(), prefix.Marker(), marker, 0)
	now := w.now() - 1000
	w.both(fleet.AcquireCall(hold(name, "me:1"), scripts.ModeAcquire, guard, now, now, 1), marker)
	brief := false
	for i := range 1 + w.rnd.IntN(3) {
		stands := pick(w, time.Minute, time.Minute, 0, time.Millisecond)
		brief = brief || stands == time.Millisecond
		first := now + pick(w, int64(i), int64(i), int64(i), -1, (window+time.Second).Microseconds(), (window-time.Second).Microseconds())
		h := hold(name, fmt.Sprint("other:", i+2))
		w.both(fleet.QueueCall(h, w.ticket(), false, w.life(), stands, first, first+pick(w, int64(0), 16)), pick(w, marker, marker, marker, ""))
	}
	// An offer of a millisecond has ended on both sides before the release: they made it a transaction's time apart.
	for end := w.now() + (w.slack+2)*1000; brief && w.now() <= end; {
	}
	switch w.rnd.IntN(8) {
	case 0:
		w.disturb()
	case 1:
		w.both(fleet.ReleaseCall(hold(name, "other:2"), now, true, scripts.Nothing), "") // rolled back: barred
	case 2: // somebody else is in the lock
		w.must("HSET", prefix.Lock(name), "other:9", 1)
		w.must("PERSIST", prefix.Lock(name))
		w.state.SetHash(prefix.Lock(name), master.Field{Name: "me:1", Value: "1"}, master.Field{Name: "other:9", Value: "1"})
	}
	largest := now + pick(w, int64(0), 0, 0, 1, 5)
	w.both(w.fleet().ReleaseCall(hold(name, "me:1"), largest, largest != now, pick(w, scripts.Advance, scripts.Advance, scripts.Reserve, scripts.Tell)), pick(w, marker, marker, marker, "", "v1 something else"))
}

// ticket is one of a few waiters, some with an inbox that nobody hears.
func (w *twin) ticket() *scripts.Ticket {
	return scripts.NewTicket(pick(w, "x", "y:y\n", "deaf"), pick(w, uint64(1), 2), int64(1000+w.rnd.IntN(2)), pick(w, 0, 0, 5, -5))
}

func (w *twin) releaseCall() (*scripts.Call, string) {
	name, fleet := w.name(), w.fleet()
	if w.rnd.IntN(4) == 0 {
		fleet = fleet.Reserving(2 * time.Second)
	}
	switch w.rnd.IntN(8) {
	case 0:
		return fleet.LeaveCall(prefix.Keys(name), w.ticket().String()), w.stamp()
	case 1:
		return fleet.AdvanceCall(prefix.Keys(name)), w.stamp()
	case 2, 3:
		ids := []string{w.id(), w.id(), "nobody:1"}[:1+w.rnd.IntN(3)]
		return fleet.DebtCall(prefix.Keys(name), ids, w.ballot(name)), ""
	}
	h := scripts.NewHold(prefix.Keys(name), w.id(), pick(w, "", w.id()))
	if w.rnd.IntN(4) == 0 {
		return fleet.ResignCall(h, w.ballot(name), w.ticket().String()), w.stamp()
	}
	return fleet.ReleaseCall(h, w.ballot(name), pick(w, true, false), pick(w, scripts.Reserve, scripts.Tell, scripts.Advance, scripts.Nothing)), w.stamp()
}

// fleet is mostly one with the usual times, which calls do not carry.
func (w *twin) fleet() scripts.Fleet {
	return scripts.NewFleet(prefix, pick(w, window, window, 10*time.Second), pick(w, barTTL, barTTL, 2*time.Hour), pick(w, int64(0), 0, 0, 5))
}

// manyCall makes some calls by one run, of one name or of both.
func (w *twin) manyCall() (*scripts.Call, string) {
	var g scripts.Group
	f, mode, next, several := w.fleet(), pick(w, scripts.ModeAcquire, scripts.ModeAcquire, scripts.ModeHeal), pick(w, scripts.Advance, scripts.Advance, scripts.Reserve, scripts.Nothing), pick(w, true, false)
	n := 0
	for most := 1 + w.rnd.IntN(4); n < most; {
		h, ballot := hold(w.name(), w.id()), w.ballot(w.name())
		call := f.ReleaseCall(h, ballot, several, next)
		if w.rnd.IntN(2) == 0 {
			call = f.AcquireCall(h, mode, guard, ballot, ballot, 1)
		}
		if g.Add(call) {
			n++
		}
	}
	return &scripts.Call{Script: scripts.Many, Args: g.AppendArgs(nil, ""), Stamp: 3 + n}, w.stamp()
}

// nonsense is a marker that nobody can read, and one that is a list, which chance alone seldom puts before an extension
// that looks at it, and an admission.
func (w *twin) nonsense() {
	name := w.name()
	w.must("DEL", prefix.Lock(name), prefix.Bar(name))
	w.state.Delete(w.now(), prefix.Lock(name))
	w.state.Delete(w.now(), prefix.Bar(name))
	now := w.now()
	w.both(fleet.AcquireCall(hold(name, "me:1"), scripts.ModeAcquire, guard, now, now, 1), "")
	w.must("SET", prefix.Marker(), "v2 nonsense")
	w.state.Set(w.now(), prefix.Marker(), "v2 nonsense", 0)
	w.both(fleet.ExtendCall(hold(name, "me:1"), guard, 1), "v1 something else")
	w.must("DEL", prefix.Marker())
	w.must("RPUSH", prefix.Marker(), 1)
	w.state.SetOther(prefix.Marker())
	w.both(w.admitCall())
}

// letExpire waits for the end of keys that would else end on one side before the call, and behind it on the other.
func (w *twin) letExpire(keys []string) {
	const margin = 50
	for _, key := range keys {
		now := w.now()
		if left := w.state.TTL(now, key); left >= 0 && left <= w.slack+margin {
			for end := now + (left+w.slack+1)*1000; w.now() <= end; {
			}
		}
	}
}

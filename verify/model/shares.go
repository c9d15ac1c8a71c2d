package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// Locks with readers. Each of at most three clients makes one attempt, as a reader or as a writer, with a ballot that
// is chosen in advance. Everything else happens in any order, at any time or never. The number of states is small
// enough to examine each step directly, without the reductions of the search for plain locks.

const clientsOfShares = 3

// ShareBounds limits a search, and selects the protections to remove.
type ShareBounds struct {
	Roles   [clientsOfShares]scripts.Role // Plain: this client does nothing
	Ballots [clientsOfShares]uint8        // only their order matters
	Repeats int                           // total number of requests that are read twice
	Forgets int                           // total number of times that a master loses its data; a TTL may pass then
	// Downgrade: client 0 is a writer, and client 1 is the reader that it becomes by a downgrade.
	Downgrade bool
	// OwnConnection: a release follows its acquire on the same connection, and so carries no ballot.
	OwnConnection bool

	// NoFences: acquires see neither fence. NoReads: acquires do not see the readers' fence. NoTombstone: a release
	// raises no fence. BesideReaders: a writer ignores readers. BesideWriters: a reader ignores writers. Blind: a
	// downgrade does not notice that the writer's share is gone. TwoSteps: instead of a downgrade, the writer unlocks
	// and a reader acquires then.
	NoFences, NoReads, NoTombstone, BesideReaders, BesideWriters, NoGuard, Blind, TwoSteps bool
}

// A shared is one master of a shareState, with the messages between it and the clients.
type shared struct {
	share        [clientsOfShares]bool // the master has the share of the client
	fence, reads uint8
	mark         uint8
	ask          [clientsOfShares]uint8 // acquire in flight: 0, or its stamp's mark + 1
	again        [clientsOfShares]bool  // the acquire has been read before
	release      [clientsOfShares]bool  // release in flight
	vote         [clientsOfShares]uint8
}

// A shareState is a state of the whole system. It is comparable: equal states have the same future.
type shareState struct {
	master           [masters]shared
	phase            [clientsOfShares]uint8
	wrote, held      uint8 // the largest ballot of a writer that held, and of any holder
	repeats, forgets uint8
	late             bool // time has passed
	gap              bool // another writer holds or has held during a downgrade
}

// passed: the client was downgraded, and its reader continues for it.
const passed = gone + 1

// SearchShares examines every state within the bounds, breadth first, up to the first violation.
func SearchShares(b ShareBounds) Result {
	x := &shareMachine{bounds: &b, encoder: scripts.NewEncoder(prefix, 0), known: map[shareCase]shareOutcome{}}
	start := shareState{}
	for c, role := range b.Roles {
		if role == scripts.Plain {
			start.phase[c] = gone
		}
	}
	from := map[shareState]shareState{start: start}
	queue := []shareState{start}
	r := Result{}
	for level := 1; r.States < len(queue); {
		if r.States == level {
			r.Depth, level = r.Depth+1, len(queue)
		}
		s := queue[r.States]
		r.States++
		x.next(s, func(t shareState, words string) {
			r.Steps++
			if r.Violation != nil {
				return
			}
			bad := x.wrong(&s, &t)
			t.keep(&s, &b)
			t.canonical(&b)
			if bad != "" {
				r.Violation = &Violation{What: bad, Story: append(x.story(from, s), words)}
				return
			}
			if _, seen := from[t]; !seen {
				from[t] = s
				queue = append(queue, t)
			}
		})
		if r.Violation != nil {
			break
		}
	}
	return r
}

// story returns the steps from the beginning to s. Each step uses the masters' names of the state before it, since
// their order changes.
func (x *shareMachine) story(from map[shareState]shareState, s shareState) (words []string) {
	for from[s] != s {
		before, told := from[s], ""
		x.next(before, func(t shareState, w string) {
			t.keep(&before, x.bounds)
			if t.canonical(x.bounds); t == s && told == "" {
				told = w
			}
		})
		words, s = append(words, told), before
	}
	slices.Reverse(words)
	return words
}

// next calls f for each step from s.
func (x *shareMachine) next(s shareState, f func(t shareState, words string)) {
	for c := range clientsOfShares {
		x.client(s, c, f)
		for i := range masters {
			x.reads(s, i, c, f)
		}
	}
	for i := range masters {
		t := s
		col := &t.master[i]
		switch {
		case int(s.forgets) < x.bounds.Forgets && !s.late && col.mark == original:
			t.forgets++
			col.share, col.fence, col.reads = [clientsOfShares]bool{}, 0, 0
			if !x.bounds.NoGuard {
				col.mark = quarantined
			}
			f(t, fmt.Sprintf("master %d forgets everything", i+1))
		case s.late && col.mark == quarantined:
			col.mark = readmitted
			f(t, fmt.Sprintf("master %d ends its quarantine", i+1))
		}
	}
	if !s.late && s.forgets > 0 {
		t := s
		t.late = true
		for i := range t.master {
			t.master[i].share = [clientsOfShares]bool{} // a TTL has expired; the fences last longer
		}
		for c := range clientsOfShares {
			switch {
			case t.phase[c] == asking && x.bounds.turns(c): // the client continues, for longer than the library would
				for i := range t.master {
					t.master[i].vote[c] = no // the granted share has expired
				}
			case t.phase[c] == asking || t.phase[c] == holding:
				t.end(c)
			}
		}
		f(t, "more time passes than the max TTL and any TTL: the client that asked or held has lost it")
	}
}

// client calls f for each step of client c: begin, hold, end its hold, or give up.
func (x *shareMachine) client(s shareState, c int, f func(t shareState, words string)) {
	t := s
	switch s.phase[c] {
	case idle:
		if x.bounds.turns(c) {
			return
		}
		t.phase[c] = asking
		for i := range t.master {
			if col := &t.master[i]; col.mark != quarantined || x.bounds.NoGuard {
				col.ask[c] = col.mark + 1
			} else {
				col.vote[c] = unasked
			}
		}
		f(t, x.name(c)+" begins: ask to all masters that vote")
	case asking:
		yeses := 0
		for i := range s.master {
			if s.master[i].vote[c] == yes {
				yeses++
			}
		}
		if yeses >= quorum {
			t.phase[c] = holding
			f(t, x.name(c)+" hears yes from two masters, and holds")
		}
		t = s
		t.end(c)
		f(t, x.name(c)+" gives up: release to all masters that have not said no")
	case holding:
		t.end(c)
		f(t, x.name(c)+" unlocks: release to all masters that have not said no")
		if x.bounds.Downgrade && c == 0 {
			t = s
			t.phase[0], t.phase[1] = passed, asking
			for i := range t.master {
				t.master[i].ask[1] = t.master[i].mark + 1 // whether the master votes does not matter
				t.master[i].share[0] = t.master[i].share[0] && !x.bounds.TwoSteps
			}
			f(t, x.name(c)+" is downgraded: ask to all masters")
		}
	}
}

// turns reports whether client c is the reader of a downgrade.
func (b *ShareBounds) turns(c int) bool { return b.Downgrade && c == 1 }

// end sends the releases of client c.
func (s *shareState) end(c int) {
	s.phase[c] = gone
	for i := range s.master {
		col := &s.master[i]
		// If the acquire of a downgrade failed, that of its writer may still arrive.
		col.release[c] = s.phase[0] == passed && c == 1 || col.vote[c] != no && col.vote[c] != unasked
	}
}

// reads calls f for each way in which master i reads the acquire or the release of client c; the message may be read
// again.
func (x *shareMachine) reads(s shareState, i, c int, f func(t shareState, words string)) {
	more := int(s.repeats) < x.bounds.Repeats
	if stamp := s.master[i].ask[c]; stamp != 0 {
		o := x.ask(&s, i, c, stamp-1)
		for _, twice := range []bool{false, true} {
			if twice && (!more || o.kind != scripts.Granted) {
				continue
			}
			t := s
			col := &t.master[i]
			o.on(col)
			if col.ask[c] = 0; twice {
				col.ask[c] = stamp
				t.repeats++
			}
			if col.again[c] = twice; !s.master[i].again[c] && s.phase[c] == asking {
				if col.vote[c] = no; o.kind == scripts.Granted {
					col.vote[c] = yes
				}
			}
			if s.phase[c] != gone || o.changes(&s.master[i]) { // otherwise the message may as well stay in flight
				f(t, fmt.Sprintf("master %d reads the ask of %s: %s%s", i+1, x.name(c), o.kind, onceMore[twice]))
			}
		}
	}
	if s.master[i].release[c] && (!x.bounds.OwnConnection || s.master[i].ask[c] == 0) {
		o := x.release(&s, i, c)
		for _, twice := range []bool{false, true} {
			if twice && !more {
				continue
			}
			t := s
			o.on(&t.master[i])
			if t.master[i].release[c] = twice; twice {
				t.repeats++
			}
			f(t, fmt.Sprintf("master %d reads the release of %s%s", i+1, x.name(c), onceMore[twice]))
		}
	}
}

var onceMore = map[bool]string{true: ", and will get it once more"}

func (x *shareMachine) name(c int) string {
	role := map[scripts.Role]string{scripts.Reader: "reader", scripts.Writer: "writer"}[x.bounds.Roles[c]]
	return fmt.Sprintf("%s %s", role, letter(c))
}

// canonical maps equivalent states to one: it clears votes of attempts that have ended, sorts the masters, and drops
// messages of ended attempts that can no longer have an effect, since fences only grow.
func (s *shareState) canonical(b *ShareBounds) {
	for i := range s.master {
		col := &s.master[i]
		for c := range clientsOfShares {
			if s.phase[c] == holding || s.phase[c] >= gone {
				if col.vote[c] == yes || s.phase[c] >= gone {
					col.vote[c] = unheard
				}
			}
			left := col.share[c] || b.turns(c) && col.share[0]
			if s.phase[c] == gone && col.fence >= b.Ballots[c] && !left && !b.NoFences && !b.NoTombstone && !b.NoGuard {
				col.ask[c], col.release[c] = 0, false
			}
			if col.ask[c] == 0 {
				col.again[c] = false
			}
		}
	}
	slices.SortFunc(s.master[:], func(a, b shared) int { return cmp.Compare(a.pack(), b.pack()) })
}

// pack returns a number that identifies the state of a master.
func (c *shared) pack() uint64 {
	w := writer{}
	flag := func(v bool) {
		n := uint8(0)
		if v {
			n = 1
		}
		w.put(n, 1)
	}
	w.put(c.fence, 5)
	w.put(c.reads, 5)
	w.put(c.mark, 2)
	for i := range clientsOfShares {
		flag(c.share[i])
		flag(c.again[i])
		flag(c.release[i])
		w.put(c.ask[i], 2)
		w.put(c.vote[i], 2)
	}
	return w.bits
}

// A shareMachine runs the masters' real decision function.
type shareMachine struct {
	bounds  *ShareBounds
	encoder *scripts.Encoder
	known   map[shareCase]shareOutcome
}

// A shareCase is everything that the outcome of a message depends on.
type shareCase struct {
	share        [clientsOfShares]bool
	fence, reads uint8
	mark, stamp  uint8
	client       int
	late, ends   bool
}

// A shareOutcome is the effect of a message on a master.
type shareOutcome struct {
	share        [clientsOfShares]bool
	fence, reads uint8
	kind         scripts.Outcome // the reply to an acquire
}

func (o *shareOutcome) on(c *shared) { c.share, c.fence, c.reads = o.share, o.fence, o.reads }

// changes reports whether o differs from the state of the master before.
func (o *shareOutcome) changes(c *shared) bool {
	return o.share != c.share || o.fence != c.fence || o.reads != c.reads
}

func (x *shareMachine) id(c int) string {
	return scripts.ShareID("client"+letter(c), 1, x.bounds.Roles[c], early, "")
}

// ask returns the outcome of master i reading the acquire of c; stamp is the mark that the acquire carries.
func (x *shareMachine) ask(s *shareState, i, c int, stamp uint8) shareOutcome {
	b, from := x.bounds, s.master[i]
	hidden := [clientsOfShares]bool{}
	for o := range clientsOfShares {
		reads := b.Roles[o] == scripts.Reader
		hidden[o] = o != c && from.share[o] && (b.Roles[c] == scripts.Writer && reads && b.BesideReaders ||
			b.Roles[c] == scripts.Reader && !reads && b.BesideWriters)
		from.share[o] = from.share[o] && !hidden[o]
	}
	if b.NoFences {
		from.fence, from.reads = 0, 0
	}
	if b.NoReads {
		from.reads = 0
	}
	if b.Blind && b.turns(c) {
		from.share[0] = true
	}
	ballot, text := ballotAt(b.Ballots[c]), record(stamp)
	if b.NoGuard {
		text = ""
	}
	keys := prefix.KeysOf(name, b.Roles[c])
	q := x.encoder.Acquire(&keys, x.id(c), guard, ballot, ballot, nil)
	if b.turns(c) && !b.TwoSteps {
		q = x.encoder.Import(&keys, x.id(c), x.id(0), guard, ballot, ballot)
	}
	o := x.once(s, &from, shareCase{client: c, stamp: stamp}, q, text)
	for other := range clientsOfShares {
		o.share[other] = o.share[other] || hidden[other]
	}
	return o
}

// release returns the outcome of master i reading the release of c.
func (x *shareMachine) release(s *shareState, i, c int) shareOutcome {
	keys := prefix.KeysOf(name, x.bounds.Roles[c])
	end := scripts.Ending{Leases: []string{x.id(c)}}
	if x.bounds.turns(c) {
		end.Leases = append(end.Leases, x.id(0))
	}
	if !x.bounds.OwnConnection || x.bounds.turns(c) {
		end.Ballot = ballotAt(x.bounds.Ballots[c])
	}
	o := x.once(s, &s.master[i], shareCase{client: c, ends: true}, x.encoder.Release(&keys, end), "")
	if x.bounds.NoTombstone {
		o.fence = s.master[i].fence
	}
	return o
}

func (x *shareMachine) once(s *shareState, c *shared, id shareCase, q *scripts.Call, stamp string) shareOutcome {
	id.share, id.fence, id.reads, id.mark, id.late = c.share, c.fence, c.reads, c.mark, s.late
	if o, ok := x.known[id]; ok {
		return o
	}
	now := early
	if s.late {
		now = later
	}
	m := &reference.State{}
	for i, has := range c.share {
		if has {
			m.SetScore(now, prefix.Lock(name), x.id(i), now+guard.Microseconds())
		}
	}
	for key, rank := range map[string]uint8{prefix.Fence(name): c.fence, prefix.Reads(name): c.reads} {
		if rank != 0 {
			m.Set(now, key, fmt.Sprint(ballotAt(rank)), scripts.FenceKept.Milliseconds())
		}
	}
	if text := record(c.mark); text != "" {
		m.Set(now, prefix.Admission(), text, 0)
	}
	reply := eval(m, now, c.mark, q, stamp)
	o := shareOutcome{}
	if q.Script == scripts.SharedAcquire {
		v, err := scripts.DecodeVote(reply)
		if err != nil {
			panic(err)
		}
		o.kind = v.Outcome
	}
	there := map[string]bool{}
	for _, share := range m.Shares(now, prefix.Lock(name)) {
		there[share.Name] = true
	}
	for i := range clientsOfShares {
		o.share[i] = there[x.id(i)]
		delete(there, x.id(i))
	}
	if len(there) > 0 {
		panic(fmt.Sprint("shares of no client: ", slices.Collect(maps.Keys(there))))
	}
	fence, _ := m.Get(now, prefix.Fence(name))
	reads, _ := m.Get(now, prefix.Reads(name))
	o.fence, o.reads = rankOf(fence), rankOf(reads)
	x.known[id] = o
	return o
}

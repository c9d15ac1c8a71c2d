package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// A world is a fleet of one lock, without a network: masters that answer the admit script, and programs that decide
// by this package. Its time is real time; the masters' clocks differ from it. The lock is kept beside the scripts,
// for its TTL of real time, so that a second holder is a fault of the admission alone.
type world struct {
	t       *testing.T
	us      int64 // now
	servers []*server
	starts  int // of servers, for run ids
	holder  *program
	until   int64 // the holder may rely on the lock until then
}

// A server is one master.
type server struct {
	state   reference.State
	env     reference.Env
	offset  int64 // of its clock
	by      *program
	until   int64 // it keeps the lock for by until then
	forgot  int64 // when it last lost data
	changed int64 // when it was last promoted
}

// A program is one user of the fleet.
type program struct {
	*Fleet
	w      *world
	name   string
	reach  quorum.Set
	clocks *ballot.Clocks
	memory []string // identity of the connection, by master; "" for none
	sent   uint64
}

func newWorld(t *testing.T, n int) *world {
	w := &world{t: t, us: epoch}
	for range n {
		s := &server{}
		w.servers = append(w.servers, s)
		w.start(s)
		s.forgot, s.changed = 0, 0
	}
	return w
}

// start gives s a new process.
func (w *world) start(s *server) {
	w.starts++
	s.env = reference.Env{RunID: fmt.Sprintf("%040x", w.starts)}
}

// forget restarts s without its data.
func (w *world) forget(s *server) {
	w.start(s)
	s.state, s.by, s.forgot = reference.State{}, nil, w.us
}

func (w *world) program(name string, guard time.Duration) *program {
	n := len(w.servers)
	all := quorum.First(n)
	p := &program{w: w, name: name, reach: all, clocks: ballot.NewClocks(all), memory: make([]string, n)}
	p.Fleet = &Fleet{
		Config: config(n), Guard: guard, Facts: make([]Fact, n), Addr: func(i int) string { return fmt.Sprint("master", i) },
	}
	return p
}

func (w *world) instant() clock.Instant { return clock.At(w.us*1000, w.us*1000) }

// pass lets time go on, in which these programs act.
func (w *world) pass(d time.Duration, programs ...*program) {
	const tick = 500 * time.Millisecond
	for ; d > 0; d -= tick {
		w.us += min(d, tick).Microseconds()
		for _, p := range programs {
			p.act()
		}
	}
}

// connect looks at each connection.
func (p *program) connect() {
	now := p.w.instant()
	for i, s := range p.w.servers {
		f, id := &p.Facts[i], s.env.Identity()
		switch {
		case !p.reach.Has(i):
			if f.Up || !f.Settled {
				f.Lose()
			}
			p.memory[i] = ""
			continue
		case p.memory[i] != id && !freed(p.memory[i], id):
			f.Lose()
		}
		f.Up, f.Identity, p.memory[i] = true, id, id
		p.clocks.Learn(i, p.w.us+s.offset, now, 0)
	}
	for i := range p.Facts {
		p.Facts[i].Own, p.Facts[i].Away = p.clocks.Own(now, i), p.clocks.Away(i)
	}
	p.Clocks = p.clocks.Read(now)
}

// act does what is to be done now.
func (p *program) act() {
	p.connect()
	for i := range p.Facts {
		for range 4 { // steps follow each other at once
			_, m := p.Judge(i)
			for j := range (m.Gather & p.reach).All() {
				p.step(j, scripts.AdmitRequest{Step: scripts.AdmitRead})
			}
			switch {
			case m.Step != "":
				p.step(i, p.Request(i, m))
			case m.Look > 0:
				p.step(i, scripts.AdmitRequest{Step: scripts.AdmitRead})
			}
			if m.Step == "" {
				break
			}
		}
	}
}

// step sends one step and learns from the answer.
func (p *program) step(i int, req scripts.AdmitRequest) {
	if !p.reach.Has(i) {
		return
	}
	p.sent++
	s, call := p.w.servers[i], scripts.NewEncoder("p", p.Config.Epoch).Admit(req)
	keys, args := call.Arguments("")
	list, ok := s.state.Eval(p.w.us+s.offset, s.env, scripts.Admit, keys, args).([]any)
	if !ok {
		p.w.t.Fatalf("step %s is answered by an error", req.Step)
	}
	p.Facts[i].Learn(list[1].(string), p.sent, p.sent)
}

// voting is the masters that vote for p, as far as it knows.
func (p *program) voting() (set quorum.Set) {
	for i := range p.Facts {
		if st, _ := p.Judge(i); st.Phase == Voting {
			set |= quorum.One(i)
		}
	}
	return set
}

// lock tries to take the lock, and fails the test where another holds it.
func (p *program) lock(ttl time.Duration) bool {
	p.connect()
	var votes, taken quorum.Set
	until := p.w.us + ttl.Microseconds()
	for i := range p.reach.All() {
		s := p.w.servers[i]
		st, _ := p.Judge(i)
		there, _ := s.state.Get(p.w.us+s.offset, "p:admission")
		held := s.by != nil && s.until > p.w.us
		if st.Phase != Voting || scripts.StampOf(there) != st.Stamp || ttl > st.Longest || held && s.by != p {
			continue
		}
		votes |= quorum.One(i)
		if !held {
			taken |= quorum.One(i)
			s.by, s.until = p, until
		}
	}
	if !p.Config.Rule.Won(votes) {
		for i := range taken.All() {
			p.w.servers[i].by = nil
		}
		return false
	}
	if h := p.w.holder; h != nil && h != p && p.w.until > p.w.us {
		p.w.t.Errorf("%s holds while %s has %v left", p.name, h.name, time.Duration(p.w.until-p.w.us)*time.Microsecond)
	}
	for i := range votes.All() {
		p.w.servers[i].until = max(p.w.servers[i].until, until)
	}
	p.w.holder, p.w.until = p, max(until, p.w.until)
	return true
}

// admit lets all masters vote at once.
func (p *program) admit() {
	p.connect()
	for i := range p.Facts {
		p.step(i, scripts.AdmitRequest{Step: scripts.AdmitRead})
	}
	p.Now = ^quorum.Set(0)
	for range 3 {
		p.act()
	}
	p.Now = 0
}

// raise writes a guard time as Locker.RaiseGuardTime does, and ends early after some steps.
func (p *program) raise(g time.Duration, steps int) {
	ok := func(longest bool) bool {
		for i := range p.Facts {
			for try := 0; ; try++ {
				f := &p.Facts[i]
				if r := &f.Record; f.own() && r.Quarantine >= g && (!longest || r.Longest >= g) {
					break
				}
				if steps--; steps < 0 || !f.own() || try == 3 {
					return false
				}
				r := f.Record
				if r.Quarantine = max(r.Quarantine, g); longest {
					r.Longest = g
				}
				p.step(i, scripts.AdmitRequest{Step: scripts.AdmitGuard, Identity: f.Identity, Seen: f.Text, Record: r})
			}
		}
		return true
	}
	if ok(false) {
		ok(true)
	}
}

// told is the record on a master.
func (w *world) told(i int) scripts.Record {
	w.t.Helper()
	text, _ := w.servers[i].state.Get(w.us+w.servers[i].offset, "p:admission")
	r, err := scripts.ParseRecord(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// H53: a new fleet votes after 30 s, and a master that lost its data after a quarantine. Both are begun and ended by
// the programs alone; two of them do not hinder each other.
func TestQuarantineOfAFleetAndOfAMaster(t *testing.T) {
	for n := 1; n <= 5; n++ {
		w := newWorld(t, n)
		a, b := w.program("a", guard), w.program("b", guard)
		w.pass(guard, a, b)
		if a.voting() != 0 {
			t.Fatalf("%d masters: %b vote before the quarantine is over", n, a.voting())
		}
		w.pass(2*time.Second, a, b)
		if a.voting() != quorum.First(n) || b.voting() != a.voting() || !a.lock(guard) {
			t.Fatalf("%d masters: %b vote afterwards", n, a.voting())
		}
		w.forget(w.servers[0])
		w.pass(guard, b, a)
		if a.voting().Has(0) {
			t.Fatalf("%d masters: the one that forgot votes", n)
		}
		w.pass(2*time.Second, a, b)
		if !a.voting().Has(0) || !b.lock(guard) {
			t.Fatalf("%d masters: the one that forgot does not come back", n)
		}
	}
}

// H80: the guard time is raised on three of five masters, and the command dies. The same with all but the last write
// of a whole raise: whatever it has done, a master that loses its data is not admitted too early for a lock that was
// allowed.
func TestAnInterruptedRaiseAdmitsNobodyEarly(t *testing.T) {
	const long = 300 * time.Second
	for steps := range 11 {
		for victim := range 5 {
			w := newWorld(t, 5)
			w.program("operator", 30*time.Second).admit()
			op := w.program("operator", 30*time.Second)
			op.act()
			op.raise(long, steps)
			holder, other := w.program("holder", long), w.program("other", 30*time.Second)
			w.pass(time.Second, holder, other)
			other.reach = quorum.First(5) &^ quorum.One((victim+2)%5)
			if won := holder.lock(long); won != (steps >= 8) { // five quarantines, and three masters that allow the TTL
				t.Errorf("%d steps: the long TTL is allowed: %v", steps, won)
			}
			w.forget(w.servers[victim])
			for range 40 {
				w.pass(7*time.Second, other, holder)
				other.lock(10 * time.Second)
			}
		}
	}
}

// H81: a quarantine is begun by a program that reads 30 s and ended by one that knows 300; and every master that is
// admitted anew has the fleet's numbers, not its own program's.
func TestRewritesCarryTheLargestNumbers(t *testing.T) {
	w := newWorld(t, 5)
	w.program("operator", 300*time.Second).admit()
	short := w.program("short", 30*time.Second)
	for i := range 5 {
		w.forget(w.servers[i])
		w.pass(301*time.Second, short)
		w.pass(2*time.Second, short)
		if r := w.told(i); r.Longest != 300*time.Second || r.Quarantine != 300*time.Second || !r.Admitted {
			t.Fatalf("master %d was admitted anew by %v", i, r)
		}
	}
	w = newWorld(t, 3)
	w.program("operator", 30*time.Second).admit()
	w.forget(w.servers[0])
	short, long := w.program("short", 30*time.Second), w.program("long", 300*time.Second)
	w.pass(25*time.Second, short)
	w.pass(10*time.Second, long)
	if w.told(0).Admitted {
		t.Error("the program with the longer guard time ended a short quarantine")
	}
	w.pass(200*time.Second, short) // H75: it was lengthened, for everybody
	if w.told(0).Admitted {
		t.Error("the program with the shorter guard time ended a quarantine that was lengthened")
	}
	w.pass(80*time.Second, short, long)
	if r := w.told(0); !r.Admitted || r.Longest != 30*time.Second {
		t.Errorf("at the end: %v", r)
	}
}

// H75: all masters come back empty in a fleet with a guard time of a minute; a program with 30 s is there first.
func TestAShorterProgramBeginsTheQuarantineOfAllMasters(t *testing.T) {
	w := newWorld(t, 5)
	w.program("operator", time.Minute).admit()
	short, long := w.program("short", 30*time.Second), w.program("long", time.Minute)
	w.pass(time.Second, long)
	if !long.lock(time.Minute) {
		t.Fatal("the lock is free")
	}
	for _, s := range w.servers {
		w.forget(s)
	}
	w.pass(2*time.Second, short)
	for range 70 {
		w.pass(time.Second, short, long)
		short.lock(10 * time.Second)
	}
	if short.voting() != quorum.First(5) {
		t.Errorf("%b vote", short.voting())
	}
}

// H91: two of three masters boot 14 s behind, and are stepped by NTP meanwhile. The quarantine lasts as long as ever.
func TestClocksThatAreSetForwardDoNotShortenAQuarantine(t *testing.T) {
	w := newWorld(t, 3)
	a, b := w.program("a", 30*time.Second), w.program("b", 30*time.Second)
	w.program("operator", 30*time.Second).admit()
	w.pass(time.Second, a, b)
	if !a.lock(30 * time.Second) {
		t.Fatal("the lock is free")
	}
	for _, s := range w.servers[:2] {
		w.forget(s)
		s.offset = -14e6
	}
	w.pass(10*time.Second, b)
	w.servers[0].offset, w.servers[1].offset = 0, 0
	c := w.program("c", 30*time.Second) // it knows the clocks only as they are now
	for range 40 {
		w.pass(time.Second, b, c)
		b.lock(time.Second)
		c.lock(time.Second)
	}
	if b.voting() != quorum.First(3) {
		t.Errorf("%b vote", b.voting())
	}
}

// H95: a program that read the guard time of 30 s, froze, and thawed after it was raised, writes no smaller one.
func TestAFrozenProgramLowersNothing(t *testing.T) {
	w := newWorld(t, 3)
	w.program("operator", 30*time.Second).admit()
	frozen, op := w.program("frozen", 30*time.Second), w.program("operator", 30*time.Second)
	w.pass(time.Second, frozen, op)
	w.forget(w.servers[0])
	w.pass(time.Second, op)
	frozen.connect()
	op.raise(300*time.Second, 100)
	frozen.act() // by what it knows
	w.pass(time.Second, frozen)
	for i := range 3 {
		if r := w.told(i); r.Longest != 300*time.Second || r.Quarantine != 300*time.Second {
			t.Errorf("master %d: %v", i, r)
		}
	}
}

// H69: a backup attaches to and leaves most masters, and later their backlogs are freed. Nobody waits.
func TestFreedBacklogsStopNobody(t *testing.T) {
	w := newWorld(t, 5)
	w.program("operator", guard).admit()
	for _, s := range w.servers { // all were promoted once, and have been admitted since
		s.env.ReplID2, s.env.Offset = strings.Repeat("a", 40), 77
	}
	a, b := w.program("a", guard), w.program("b", guard)
	w.pass(2*guard, a, b)
	if a.voting() != quorum.First(5) {
		t.Fatalf("%b vote after the promotions", a.voting())
	}
	for _, s := range w.servers[:4] {
		s.env.ReplID2 = ""
	}
	a.connect()
	if a.voting() != quorum.First(5) {
		t.Errorf("%b vote at the moment", a.voting())
	}
	w.pass(time.Second, a, b)
	if a.voting() != quorum.First(5) || b.voting() != a.voting() || !a.lock(guard) {
		t.Errorf("%b and %b vote afterwards", a.voting(), b.voting())
	}
	if got := w.told(0).Identity; got != w.servers[0].env.Identity() {
		t.Errorf("the record was not rewritten: %s", got)
	}
}

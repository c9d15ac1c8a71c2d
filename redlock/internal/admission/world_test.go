package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
)

// A world is a deployment with one lock and no network: masters that execute the admit script, and clients that decide
// with this package. Its time is real time, from which the masters' clocks differ. The lock is kept outside of the
// scripts, for its TTL of real time, so that a second holder is a fault of the admission alone.
type world struct {
	t       *testing.T
	us      int64 // now
	servers []*server
	starts  int // number of starts, for run ids
	holder  *program
	until   int64 // end of the holder's validity
}

// A server is one master.
type server struct {
	state   reference.State
	env     reference.Env
	offset  int64 // of its clock
	by      *program
	until   int64 // it keeps the lock of by until then
	forgot  int64 // when it last lost data
	changed int64 // when it was last promoted
}

// A program is one client of the deployment.
type program struct {
	*Deployment
	w      *world
	name   string
	reach  quorum.Set
	clocks *ballot.Clocks
	memory []string // identity of the connection, by master; "" for none
	lost   []int64  // when the connection ended, by master
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

// start gives s a new run id.
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
	p := &program{
		w: w, name: name, reach: all, clocks: ballot.NewClocks(all), memory: make([]string, n), lost: make([]int64, n),
	}
	p.Deployment = &Deployment{
		Config: config(n), Guard: guard, Facts: make([]Fact, n), Addr: func(i int) string { return fmt.Sprint("master", i) },
	}
	return p
}

func (w *world) instant() clock.Instant { return clock.At(w.us*1000, w.us*1000) }

// pass lets time pass, in which these clients act.
func (w *world) pass(d time.Duration, programs ...*program) {
	const tick = 500 * time.Millisecond
	for ; d > 0; d -= tick {
		w.us += min(d, tick).Microseconds()
		for _, p := range programs {
			p.act()
			w.checkNumbers()
		}
	}
}

// checkNumbers fails the test if a voting master accepts a TTL longer than the quarantine of another one.
func (w *world) checkNumbers() {
	var longest, shortest time.Duration
	for _, s := range w.servers {
		text, _ := s.state.Get(w.us+s.offset, "p:admission")
		r, err := scripts.ParseRecord(text)
		if id := s.env.Identity(); err != nil || !r.Admitted || r.Identity != id && !freed(r.Identity, id) {
			continue
		}
		longest = max(longest, r.Longest)
		if shortest == 0 || r.Quarantine < shortest {
			shortest = r.Quarantine
		}
	}
	if longest > shortest {
		w.t.Fatalf("a master accepts TTLs up to %v, but the quarantine of another is %v", longest, shortest)
	}
}

// connect updates each connection.
func (p *program) connect() {
	now := p.w.instant()
	for i, s := range p.w.servers {
		f, id := &p.Facts[i], s.env.Identity()
		switch {
		case !p.reach.Has(i):
			if f.Up || !f.Settled {
				p.lost[i] = p.w.us
				f.Lose()
			}
			f.Lost = time.Duration(p.w.us-p.lost[i]) * time.Microsecond
			p.memory[i] = ""
			continue
		case p.memory[i] != id && !freed(p.memory[i], id):
			f.Lose()
		}
		f.Up, f.Lost, f.Identity, p.memory[i] = true, 0, id, id
		p.clocks.Learn(i, p.w.us+s.offset, now, 0)
	}
	for i := range p.Facts {
		p.Facts[i].Own, p.Facts[i].Away = p.clocks.Own(now, i), p.clocks.Away(i)
	}
	p.Clocks = p.clocks.Read(now)
}

// act performs the next actions.
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

// step sends one step and records the reply.
func (p *program) step(i int, req scripts.AdmitRequest) {
	if !p.reach.Has(i) {
		return
	}
	p.sent++
	s, call := p.w.servers[i], scripts.NewEncoder("p", p.Config.Epoch).Admit(req)
	keys, args := call.Arguments("")
	list, ok := s.state.Eval(p.w.us+s.offset, s.env, scripts.Admit, keys, args).([]any)
	if !ok {
		p.w.t.Fatalf("step %s returned an error", req.Step)
	}
	p.Facts[i].Learn(list[1].(string), p.sent, p.sent)
}

// voting returns the masters that vote, as far as p knows.
func (p *program) voting() (set quorum.Set) {
	for i := range p.Facts {
		if st, _ := p.Judge(i); st.Phase == Voting {
			set |= quorum.One(i)
		}
	}
	return set
}

// lock tries to acquire the lock, and fails the test if another client holds it.
func (p *program) lock(ttl time.Duration) bool {
	p.connect()
	var votes, taken quorum.Set
	until := p.w.us + ttl.Microseconds()
	for i := range p.reach.All() {
		s := p.w.servers[i]
		st, _ := p.Judge(i)
		there, _ := s.state.Get(p.w.us+s.offset, "p:admission")
		held := s.by != nil && s.until > p.w.us
		if st.Phase != Voting || scripts.StampOf(there) != st.Stamp || ttl > st.Record.Longest || held && s.by != p {
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

// admit makes all masters vote at once.
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

// raise writes a max TTL as Admin.RaiseMaxTTL does, and ends early after some steps.
func (p *program) raise(g time.Duration, steps int) {
	ok := func(longest bool) bool {
		all := true
		for i := range p.Facts {
			for try := 0; ; try++ {
				f := &p.Facts[i]
				if r := &f.Record; f.own() && r.Quarantine >= g && (!longest || r.Longest >= g) {
					break
				}
				if !f.own() || try == 3 { // the other masters are still written
					all = false
					break
				}
				if steps--; steps < 0 {
					return false
				}
				r := f.Record
				if r.Quarantine = max(r.Quarantine, g); longest {
					r.Longest = g
				}
				p.step(i, scripts.AdmitRequest{Step: scripts.AdmitGuard, Identity: f.Identity, Seen: f.Text, Record: r})
			}
		}
		return all
	}
	for ok(false) {
		before := make([]string, len(p.Facts))
		for i := range p.Facts {
			before[i] = p.Facts[i].Text
		}
		same := true
		for i := range p.Facts {
			p.step(i, scripts.AdmitRequest{Step: scripts.AdmitRead})
			same = same && p.Facts[i].Text == before[i]
		}
		if same {
			ok(true)
			return
		}
	}
}

// record returns the record on a master.
func (w *world) record(i int) scripts.Record {
	w.t.Helper()
	text, _ := w.servers[i].state.Get(w.us+w.servers[i].offset, "p:admission")
	r, err := scripts.ParseRecord(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// H91: two of three masters boot with clocks 14 s behind, which NTP corrects meanwhile. The quarantine has its normal
// length.
func TestClocksSetForwardDoNotShortenQuarantine(t *testing.T) {
	w := newWorld(t, 3)
	a, b := w.program("a", 30*time.Second), w.program("b", 30*time.Second)
	w.program("operator", 30*time.Second).admit()
	w.pass(time.Second, a, b)
	if !a.lock(30 * time.Second) {
		t.Fatal("the lock was not acquired")
	}
	for _, s := range w.servers[:2] {
		w.forget(s)
		s.offset = -14e6
	}
	w.pass(10*time.Second, b)
	w.servers[0].offset, w.servers[1].offset = 0, 0
	c := w.program("c", 30*time.Second) // it knows only the present clocks
	for range 40 {
		w.pass(time.Second, b, c)
		b.lock(time.Second)
		c.lock(time.Second)
	}
	if b.voting() != quorum.First(3) {
		t.Errorf("%b vote", b.voting())
	}
}

// H95: a client that read the max TTL of 30 s, froze, and resumed after it was raised, writes no smaller one.
func TestFrozenProgramLowersNothing(t *testing.T) {
	w := newWorld(t, 3)
	w.program("operator", 30*time.Second).admit()
	frozen, op := w.program("frozen", 30*time.Second), w.program("operator", 30*time.Second)
	w.pass(time.Second, frozen, op)
	w.forget(w.servers[0])
	w.pass(time.Second, op)
	frozen.connect()
	op.raise(300*time.Second, 100)
	frozen.act() // with outdated data
	w.pass(time.Second, frozen)
	for i := range 3 {
		if r := w.record(i); r.Longest != 300*time.Second || r.Quarantine != 300*time.Second {
			t.Errorf("master %d: %v", i, r)
		}
	}
}

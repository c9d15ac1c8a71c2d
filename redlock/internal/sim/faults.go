package sim

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A fault is one way in which something goes wrong.
type fault int

// The faults.
const (
	crashEmpty  fault = iota // a master stops, and starts without its memory
	crashFull                // ... with all of it
	flush                    // a master's keys are deleted
	restore                  // a master starts from an older snapshot
	failback                 // a master is a replica for a while, and has lost locks when it is a master again
	scriptFlush              // a master forgets its scripts
	stall                    // what one client sends to one master is held up, and arrives late
	cutOff                   // connections break
	loseReply                // scripts take effect, and their replies and connections are lost
	hang                     // a master executes nothing for a while
	refusal                  // a master is out of memory for a while
	split                    // a client cannot reach some masters
	splitUp                  // ... they do not hear it
	splitDown                // ... it does not hear them
	suspend                  // a client's machine sleeps, or its virtual machine is frozen
	turnBack                 // a client's wall clock is set back
	turnOn                   // ... forward
	slew                     // a master's clock is slewed to the other side
	restart                  // a client closes its Locker and makes another
	evict                    // a master drops the key of a lock: beyond what is survived
	leap                     // a master's clock jumps forward: beyond what is survived
	leapAll                  // the machines of all programs stand still at once, with their network
	leapReply                // ... just before a client reads what a master has answered
	stopProgram              // a program is stopped while its machine goes on
	emptyAll                 // all masters restart without their memory at once
	backup                   // all masters but perhaps one get another replication id, and lose nothing
	leave                    // a client closes its Locker in a hurry, mostly while masters hang, and makes another
	lapseOne                 // a master forgets a vote while messages of a round that may repair it are late
	faultKinds
)

// The faults of the mixture are those before leapAll; beyondFaults is how many of them, at their end, are not survived.
const (
	olderFaults  = leapAll
	beyondFaults = 2
)

// fault makes one fault, drawn by its weight. The world's lock is held.
func (w *world) fault() {
	total := 0
	for _, n := range w.plan.weights {
		total += n
	}
	if total == 0 {
		return
	}
	if w.random.IntN(5) == 0 {
		s := w.anyServer()
		s.saved = s.state.Clone()
	}
	draw := w.random.IntN(total)
	for f, n := range w.plan.weights {
		if draw -= n; draw < 0 {
			w.make(fault(f))
			return
		}
	}
}

func (w *world) make(f fault) {
	s, c := w.anyServer(), w.anyClient()
	switch f {
	case crashEmpty, crashFull, restore:
		w.crash(s, f)
	case flush:
		if w.mayForget(s) {
			w.note(-1, s.index, "loses all its keys", "", 0)
			s.state.Flush()
			s.forget()
		}
	case failback:
		w.failback(s)
	case scriptFlush:
		w.note(-1, s.index, "forgets its scripts", "", 0)
		clear(s.loaded)
	case stall, splitUp:
		w.separate(c, s, f, true, false)
	case splitDown:
		w.separate(c, s, f, false, true)
	case split:
		w.separate(c, s, f, true, true)
	case cutOff:
		w.cutOff(c, s)
	case loseReply:
		s.mute = 1 + w.random.IntN(2)
		w.note(-1, s.index, "will lose replies:", "", int64(s.mute))
	case hang:
		s.hang(w.upTo(3 * w.plan.most))
	case refusal:
		w.note(-1, s.index, "is out of memory", "", 0)
		s.refusal = "OOM command not allowed when used memory > 'maxmemory'."
		w.ending(w.upTo(w.plan.guard), func() { s.refusal = "" })
	case suspend, stopProgram:
		w.suspend(c, f == suspend)
	case leapAll, leapReply:
		w.freezeAll(c, f == leapReply)
	case restart:
		c.restart(100 * time.Millisecond)
	case leave:
		w.leave(c)
	case lapseOne:
		w.lapse(s, c)
	case emptyAll:
		w.emptyAll()
	case backup:
		w.backup()
	default:
		w.makeClock(f, s, c)
	}
}

func (w *world) makeClock(f fault, s *server, c *client) {
	switch f {
	case turnBack: // not while it is also frozen: then both of its clocks miss the same time
		if !w.plan.frozen {
			w.turn(c, -w.upTo(2*time.Minute))
		}
	case turnOn:
		w.turn(c, w.upTo(2*w.plan.guard))
	case slew:
		s.set(s.off(), 2-s.clock.rate)
		w.note(-1, s.index, "has its clock slewed", "", 0)
	case evict:
		name := w.plan.names[w.random.IntN(len(w.plan.names))]
		w.note(-1, s.index, "drops the lock", name, 0)
		s.state.Delete(s.clock.now(), prefix.Lock(name))
	case leap:
		d := w.upTo(w.plan.guard)
		if w.random.IntN(4) == 0 {
			d = w.upTo(2 * scripts.Window)
		}
		w.note(-1, s.index, "has its clock leap by", "", int64(d))
		s.set(s.off()+d, s.clock.rate)
		w.leapt, w.loose = true, true
	}
}

// mayForget says whether s may lose its memory: as a rule only a minority does so within a guard time.
func (w *world) mayForget(s *server) bool {
	if m := w.plan.move; m != nil { // a minority of each set
		return w.mayForgetIn(s, m.old) && w.mayForgetIn(s, m.next)
	}
	// A program with a smaller guard time than its fleet is no danger only while a minority forgets.
	if w.random.IntN(20) == 0 && slices.Min(w.plan.guards) == w.plan.guard {
		return true
	}
	recent := 0
	for _, o := range w.servers {
		if o != s && w.since(o.forgot) < w.quarantine()+3*time.Second {
			recent++
		}
	}
	return recent < max(1, (w.plan.masters-1)/2)
}

// leastQuarantine is the shortest quarantine that there is.
const leastQuarantine = 30 * time.Second

// quarantine is how long a quarantine lasts.
func (w *world) quarantine() time.Duration { return max(w.plan.guard, leastQuarantine) }

// forget takes note that a master has lost something.
func (s *server) forget() {
	s.forgot = s.w.now()
	s.ended = map[string]bool{}
}

func (w *world) crash(s *server, f fault) {
	if s.down || f != crashFull && !w.mayForget(s) {
		return
	}
	d := w.upTo(w.plan.guard)
	if w.random.IntN(2) == 0 {
		d = time.Millisecond
	}
	what := map[fault]string{crashEmpty: "without its memory", crashFull: "with its memory", restore: "from a snapshot"}[f]
	w.note(-1, s.index, "crashes, and will be back "+what+" in", "", int64(d))
	s.down, s.hung, s.backlog, s.mute = true, false, nil, 0
	s.disconnect(nil)
	w.ending(d, func() {
		s.down, s.replica = false, false
		s.restart()
		clear(s.loaded)
		switch {
		case f == crashFull:
			s.forgot = s.w.now()
			return
		case f == restore && s.saved != nil:
			s.recall()
		default:
			s.state.Flush()
		}
		s.forget()
	})
}

// recall makes the last snapshot the memory. The holds in it may have been released since: those live to their TTL.
func (s *server) recall() {
	s.state = *s.saved.Clone()
	clear(s.relics)
	for _, name := range s.w.plan.names {
		if id, _ := s.holder(name); id != "" {
			s.relics[id] = true
		}
	}
}

// disconnect ends the connections that are wanted, nil being all; what is on its way on them is lost.
func (s *server) disconnect(wanted func(*conn) bool) {
	for _, c := range s.w.clients {
		for _, n := range append([]*conn(nil), c.links[s.addr].conns...) {
			if wanted == nil || wanted(n) {
				n.upHeld, n.downHeld = nil, nil
				n.cut(false)
			}
		}
	}
}

// failback makes a master a replica for longer than a heartbeat takes to see it, and a master again, with its
// admission record and without the locks of late. Connections stay. A client that slept through it all would not
// see it: that is said not to be survived, so its connection breaks.
func (w *world) failback(s *server) {
	if s.down || s.replica || !w.mayForget(s) {
		return
	}
	began := w.now()
	w.note(-1, s.index, "is made a replica, and loses what it has", "", 0)
	now := s.clock.now()
	record, _ := s.state.Get(now, prefix.Admission())
	if s.saved != nil && w.random.IntN(2) == 0 {
		s.recall()
	} else {
		s.state = reference.State{}
	}
	if record != "" {
		s.state.Set(now, prefix.Admission(), record, 0)
	}
	s.replica = true
	s.forget()
	// It takes its time even where the faults end before: one that comes and goes within a heartbeat is not survived.
	d := w.plan.heartbeat + 3*w.plan.timeout + w.plan.spike + w.upTo(w.plan.heartbeat)
	w.calmFrom = later(w.calmFrom, time.Now().Add(d))
	w.at(d, slotFaults, func() {
		if !s.replica {
			return // it has crashed since
		}
		w.note(-1, s.index, "is made a master again", "", 0)
		s.replica = false
		s.forgot = s.w.now()
		s.promote()
		s.disconnect(func(n *conn) bool { c := n.l.c; return c.asleep || c.woken.After(began) || n.l.upCut || n.l.downCut })
	})
}

// suspend stops a client's machine: its clocks, and everything on its connections. Its goroutines would go on, but
// there is nothing that they hear of. Where machine is false only the program is stopped, and the clocks go on.
func (w *world) suspend(c *client, machine bool) {
	if c.asleep {
		return
	}
	d := w.upTo(3 * w.plan.most)
	if w.plan.kind == oldness {
		d = 20*time.Second + w.upTo(60*time.Second)
	}
	if w.plan.kind == freezes {
		d = w.upTo(w.plan.most)
	}
	if machine {
		w.note(c.index, -1, "sleeps for", "", int64(d))
		c.watch.stop()
	} else {
		w.note(c.index, -1, "is stopped for", "", int64(d))
	}
	c.asleep, c.awake = true, make(chan struct{})
	for _, l := range c.inOrder {
		for _, n := range l.conns {
			n.pause()
		}
	}
	w.ending(d, func() {
		if !c.asleep {
			return
		}
		w.note(c.index, -1, "wakes up", "", 0)
		c.watch.start(w.plan.frozen, w.plan.kind == paused)
		c.asleep, c.woken, c.jumped = false, w.now(), time.Now()
		close(c.awake)
		for i, l := range c.inOrder {
			for _, n := range l.conns {
				w.at(time.Duration(i)*tick, n.slot, n.unpause)
			}
		}
	})
}

// duplicate has a script executed once more, later, as if an old connection had kept a copy of it.
func (w *world) duplicate(n *conn, commands []command) {
	if !w.faults || w.plan.twice == 0 || n.l.random.Float64() >= w.plan.twice {
		return
	}
	s, run := n.l.s, n.l.s.env.RunID
	due := w.at(time.Duration(n.l.random.Int64N(int64(w.plan.most))), n.slot, func() {
		if s.down || s.hung || s.env.RunID != run {
			return
		}
		for _, c := range commands {
			if c[0] == "EVALSHA" {
				w.note(n.l.c.index, s.index, "is heard once more", "", 0)
				s.script(n, c)
			}
		}
	})
	w.repeats = later(w.repeats, due)
}

// ending has f called once: after d, or when the faults end, if that is before.
func (w *world) ending(d time.Duration, f func()) {
	done := false
	once := func() {
		if !done {
			done = true
			f()
		}
	}
	w.endings = append(w.endings, once)
	w.at(d, slotFaults, once)
}

// calm ends every fault that lasts. The world's lock is held.
func (w *world) calm() {
	w.faults = false
	for _, f := range w.endings {
		f()
	}
	w.endings = nil
	if w.plan.kind == setback && w.random.IntN(2) == 0 {
		w.forgetAndTurn()
	}
	for _, s := range w.servers {
		s.mute = 0
		if s.set(s.off(), 1); w.plan.beyond { // a quarantine may last minutes yet, and nobody else keeps the clocks together
			w.setBack = max(w.setBack, s.off())
			s.set(0, 1)
		}
	}
	w.note(-1, -1, "the faults are over", "", 0)
}

func (w *world) anyServer() *server { return w.servers[w.random.IntN(len(w.servers))] }
func (w *world) anyClient() *client { return w.clients[w.random.IntN(len(w.clients))] }

func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(d) + 1)).Round(time.Microsecond)
}

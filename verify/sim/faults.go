package sim

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// A fault is one kind of failure.
type fault int

const (
	crashEmpty  fault = iota // a master crashes, and restarts without its data
	crashFull                // a master crashes, and restarts with all of its data
	flush                    // a master's keys are deleted
	restore                  // a master restarts from an older snapshot
	failback                 // a master is a replica for a while; when it is a master again, it has lost locks
	scriptFlush              // a master loses its cached scripts
	stall                    // messages of one client to one master are delayed
	cutOff                   // connections break
	loseReply                // scripts take effect, but their replies and connections are lost
	hang                     // a master executes nothing for a while
	refusal                  // a master is out of memory for a while
	split                    // a client cannot reach some masters
	splitUp                  // a client's messages do not reach some masters
	splitDown                // the messages of some masters do not reach a client
	suspend                  // a client's machine sleeps, or its virtual machine is frozen
	turnBack                 // a client's wall clock is set back
	turnOn                   // a client's wall clock is set forward
	slew                     // the error of the rate of a master's clock changes its sign
	restart                  // a client closes its Locker and creates another
	evict                    // a master drops the key of a lock: not tolerated
	leap                     // a master's clock jumps forward: not tolerated
	leapAll                  // the machines of all clients stop together, with their network
	leapReply                // like leapAll, just before a client reads a reply of a master
	stopProcess              // a process is stopped while its machine continues
	emptyAll                 // all masters restart together without their data
	backup                   // all masters, or all but one, get another replication id without loss of data
	leave                    // like restart, but Close has a short deadline, mostly while masters hang
	lapseOne                 // a master loses a vote while messages of a round that may repair it are late
	notify                   // masters publish messages about a lease: repeatedly, late, or without a reason
	jump                     // the clock of a master in a fixed minority jumps
	vanish                   // the admission record of a master is deleted while the server runs
	comeBack                 // an earlier admission record comes back while the server runs, usually without the locks
	recordTTL                // the admission records of some masters get a TTL
	fileOff                  // the append-only file of a durable master is switched off for a while
	faultKinds
)

// Runs of the kinds mixture and excess draw from the faults before leapAll. The last beyondFaults of these faults are
// not tolerated, so only excess chooses them.
const (
	olderFaults  = leapAll
	beyondFaults = 2
)

// fault causes one fault, drawn by the weights of the plan. Sometimes it also takes a snapshot of a master. The caller
// must hold simulation.mu.
func (w *simulation) fault() {
	total := 0
	for _, n := range w.plan.weights {
		total += n
	}
	if total == 0 {
		return
	}
	if w.random.IntN(5) == 0 {
		s := w.anyServer()
		s.saved = s.State.Clone()
	}
	draw := w.random.IntN(total)
	for f, n := range w.plan.weights {
		if draw -= n; draw < 0 {
			w.make(fault(f))
			return
		}
	}
}

func (w *simulation) make(f fault) {
	s, c := w.anyServer(), w.anyClient()
	switch f {
	case crashEmpty, crashFull, restore:
		w.crash(s, f)
	case flush:
		if w.mayForget(s) {
			w.note(-1, s.index, "loses all its keys", "", 0)
			s.State.Flush()
			s.forget()
		}
	case failback:
		w.failback(s)
	case scriptFlush:
		w.note(-1, s.index, "forgets its scripts", "", 0)
		clear(s.Loaded)
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
		s.Refusal = "OOM command not allowed when used memory > 'maxmemory'."
		w.ending(w.upTo(w.plan.guard), func() { s.Refusal = "" })
	case suspend, stopProcess:
		w.suspend(c, f == suspend)
	case leapAll, leapReply:
		w.freezeAll(c, f == leapReply)
	case restart:
		c.restart(100 * time.Millisecond)
	case leave:
		w.leave(c)
	case lapseOne:
		w.lapse(s, c)
	case notify:
		w.notify(s)
	case jump:
		w.jumpSoon()
	case vanish, comeBack, recordTTL:
		w.makeRecord(f, s)
	case fileOff:
		w.switchFile(s)
	case emptyAll:
		w.emptyAll()
	case backup:
		w.backup()
	default:
		w.makeClock(f, s, c)
	}
}

func (w *simulation) makeClock(f fault, s *server, c *client) {
	switch f {
	case turnBack: // not with frozen clients, whose boot and wall clocks could both miss the same time
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
		s.State.Delete(s.clock.now(), prefix.Lock(name))
		s.lost(trace.Evict)
	case leap:
		d := w.upTo(w.plan.guard)
		if w.random.IntN(4) == 0 {
			d = w.upTo(2 * skew.Window)
		}
		w.note(-1, s.index, "has its clock leap by", "", int64(d))
		s.set(s.off()+d, s.clock.rate)
		w.leapt, w.loose = true, true
	}
}

// mayForget reports whether s may lose its data. Normally only a minority of the masters may do so within a quarantine.
func (w *simulation) mayForget(s *server) bool {
	if m := w.plan.move; m != nil { // in a change, only a minority of each set
		return w.mayForgetIn(s, m.old) && w.mayForgetIn(s, m.next)
	}
	// Sometimes more masters may lose their data. That is safe unless some client has a max TTL below the deployment's.
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

// leastQuarantine is the minimum quarantine.
const leastQuarantine = 30 * time.Second

// quarantine returns the length of a quarantine.
func (w *simulation) quarantine() time.Duration { return max(w.plan.guard, leastQuarantine) }

// forget records that a master has lost its data.
func (s *server) forget() {
	s.forgot, s.excused = s.w.now(), true
	s.ended = map[string]bool{}
	s.lost(trace.Forget)
}

func (w *simulation) crash(s *server, f fault) {
	if s.down || s.fileOff || f != crashFull && !w.mayForget(s) {
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
		s.down, s.Replica = false, false
		s.restart()
		clear(s.Loaded)
		switch {
		case f == crashFull:
			s.forgot = s.w.now()
			return
		case f == restore && s.saved != nil:
			s.recall()
		default:
			s.State.Flush()
		}
		s.forget()
	})
}

// notify makes a master publish messages to the owner of a lease on that master, which make the owner check or release
// the lease. Each message is repeated at a random time, when the lease may have ended.
func (w *simulation) notify(s *server) {
	name := w.plan.names[w.random.IntN(len(w.plan.names))]
	id, _ := s.holder(name)
	owner, _ := scripts.LeaseLabel(id)
	if owner == "" || s.down || s.hung {
		return
	}
	w.note(-1, s.index, "publishes messages about", name, 0)
	keys := prefix.Keys(name)
	words := prefix.Notify(&keys, id, w.random.IntN(2) == 0).Words("", false)
	for range 1 + w.random.IntN(3) {
		s.Publish(words[1], words[2])
		w.ending(w.upTo(w.plan.guard), func() { s.Publish(words[1], words[2]) })
	}
}

// recall restores the last snapshot. Locks that were released after the snapshot remain until their TTLs expire.
func (s *server) recall() {
	s.State = s.saved.Clone()
	s.restored()
}

// restored records the leases of data that was restored from a snapshot.
func (s *server) restored() {
	clear(s.relics)
	for _, name := range s.w.plan.names {
		if id, _ := s.holder(name); id != "" {
			s.relics[id] = true
		}
	}
}

// disconnect ends the connections for which wanted returns true, or all connections if wanted is nil. Data in flight
// is lost.
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

// failback makes a master a replica, for so long that a heartbeat detects the replica, and then a master again, with
// its admission record and without recent locks. Connections stay open, except those of clients that may not have
// noticed the replica: according to the documentation, a change that a client does not notice is not tolerated.
func (w *simulation) failback(s *server) {
	if s.down || s.Replica || !w.mayForget(s) {
		return
	}
	began := w.now()
	w.note(-1, s.index, "becomes a replica, and loses recent data", "", 0)
	now := s.clock.now()
	record, _ := s.State.Get(now, prefix.Admission())
	if s.saved != nil && w.random.IntN(2) == 0 {
		s.recall()
	} else {
		s.State = new(reference.State)
	}
	if record != "" {
		s.State.Set(now, prefix.Admission(), record, 0)
	}
	s.Replica, s.replicaSince = true, began
	s.forget()
	// The fault lasts for d even if the faults end earlier, because a change within a heartbeat is not tolerated.
	d := w.plan.heartbeat + 3*w.plan.timeout + w.plan.spike + w.upTo(w.plan.heartbeat)
	w.calmFrom = later(w.calmFrom, time.Now().Add(d))
	w.at(d, slotFaults, func() {
		if !s.Replica || !s.replicaSince.Equal(began) {
			return // the master has crashed since
		}
		w.note(-1, s.index, "becomes a master again", "", 0)
		s.Replica = false
		s.forgot = s.w.now()
		s.promote()
		s.disconnect(func(n *conn) bool { c := n.l.c; return c.asleep || c.woken.After(began) || n.l.upCut || n.l.downCut })
	})
}

// suspend stops a client's machine with its clocks and its connections. The client's goroutines continue, but no
// data reaches them. If machine is false, only the process is stopped, and the clocks continue.
func (w *simulation) suspend(c *client, machine bool) {
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

// duplicate executes commands a second time after a random delay, as if an old connection had kept a copy of them.
func (w *simulation) duplicate(n *conn, commands []command) {
	if !w.faults || w.plan.twice == 0 || n.l.random.Float64() >= w.plan.twice {
		return
	}
	s, run := n.l.s, n.l.s.Env.RunID
	due := w.at(time.Duration(n.l.random.Int64N(int64(w.plan.most))), n.slot, func() {
		if s.down || s.hung || s.Env.RunID != run {
			return
		}
		for _, c := range commands {
			if c[0] == "EVALSHA" {
				w.note(n.l.c.index, s.index, "has a message executed again", "", 0)
				s.script(n, c)
			}
		}
	})
	w.repeats = later(w.repeats, due)
}

// ending calls f once: after d or, if the faults end earlier, at their end.
func (w *simulation) ending(d time.Duration, f func()) {
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

// calm ends all faults. The caller must hold simulation.mu.
func (w *simulation) calm() {
	w.faults = false
	for _, f := range w.endings {
		f()
	}
	w.endings = nil
	if w.plan.kind == setback && w.random.IntN(2) == 0 {
		w.forgetAndTurn()
	}
	w.calmClocks()
	for _, s := range w.servers {
		s.mute = 0
		if s.set(s.off(), 1); w.plan.beyond { // in these runs the masters' clocks may differ too much
			w.setBack = max(w.setBack, s.off())
			s.set(0, 1)
		}
	}
	w.note(-1, -1, "the faults end", "", 0)
}

func (w *simulation) anyServer() *server { return w.servers[w.random.IntN(len(w.servers))] }
func (w *simulation) anyClient() *client { return w.clients[w.random.IntN(len(w.clients))] }

func (w *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(d) + 1)).Round(time.Microsecond)
}

package sim

import (
	"math/rand/v2"
	"time"
)

// extras holds the additions of the newer kinds to a plan.
type extras struct {
	lists    [][]int // the list of masters of each client; nil: all masters
	rolling  bool    // the lists differ because some clients already use a new list, without a change of the epoch
	bare     bool    // with rolling: no master has an admission record initially
	oneLabel bool    // all clients have the same label
	partitions
	waiters  int           // number of waiters of the dying client
	silent   bool          // ... whose connections do not end, so that the masters do not notice its death
	long     bool          // the last client has a max TTL above that of the deployment
	away     time.Duration // additional delay of the guest's messages in each direction
	together bool          // several names are locked together
	linger   bool          // locks linger
	slots    int           // calls acquire slots of a semaphore of this size; names lists them; 0: no semaphore
	kinds    bool          // ... and some use its name as another kind, or with another size
	minHold  bool          // some locks have a minimum hold
	sharing
	jumping
}

// partitions holds the lasting partitions of a plan.
type partitions struct {
	apart    []int // masters that are partitioned from all clients forever
	hidden   []int // ... only from the guest
	up, down bool  // directions in which the masters in apart are cut off
	cutAfter time.Duration
}

// sharing describes how a plan uses readers and writers.
type sharing struct {
	readers bool    // names have readers and writers
	endless bool    // ... and readers that arrive endlessly must not starve a writer
	reads   float64 // probability that a call acquires a reader's lock
}

// stressNewer chooses the faults of the newer kinds.
func (p *plan) stressNewer(r *rand.Rand) {
	switch p.kind {
	case freezes:
		p.freezes(r)
	case setback:
		p.setback(r)
	case leaving:
		p.leaving(r)
	case strangers:
		p.strangers(r)
	case emptied:
		p.emptied(r)
	case backups:
		p.weights[backup], p.weights[cutOff] = 2, pick(r, 0, 1)
		p.guard = between(r, time.Second, 2*time.Second)
		p.every = between(r, 200*time.Millisecond, 600*time.Millisecond)
	case lasting:
		p.lasting(r)
	case crowd:
		p.crowd(r)
	case lonely:
		p.lonely(r)
	case quitting:
		p.crowd(r)
		p.waiters, p.silent, p.length = 12, false, between(r, 8*time.Second, 12*time.Second)
		p.heartbeat = between(r, 300*time.Millisecond, time.Second)
	case far:
		p.far(r)
	case several:
		p.several(r)
	case minimum:
		p.minimum(r)
	case readers:
		p.share(r)
	case paused:
		p.paused(r)
	case lapses:
		p.lapses(r)
	case lingers:
		p.lingers(r)
	}
}

// lingers chooses lingering locks with the same TTL, and faults of masters and clients while these locks are idle.
func (p *plan) lingers(r *rand.Rand) {
	p.few(r, crashEmpty, crashFull, flush, suspend, suspend, stall, cutOff, loseReply)
	p.weights[notify] = 2
	p.clients, p.names, p.linger = pick(r, 2, 2, 3), []string{"a"}, true
	p.guard = between(r, 300*time.Millisecond, 600*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard/2
	p.idle, p.dwell = between(r, time.Millisecond, 60*time.Millisecond), between(r, time.Millisecond, 30*time.Millisecond)
	p.retry, p.fair, p.toEnd, p.hand = some(r, 0.3), some(r, 0.2), some(r, 0.2), 0
	p.every = between(r, 50*time.Millisecond, 400*time.Millisecond)
	if r.IntN(2) == 0 { // connections survive a suspension
		p.timeout, p.heartbeat = 2*time.Second, 3*time.Second
	}
}

// freezes chooses holds that are often not extended, and freezes that are shorter than the validity of a lock.
func (p *plan) freezes(r *rand.Rand) {
	p.few(r, suspend, leapAll, leapReply, stopProcess)
	p.weights[cutOff] = pick(r, 0, 0, 1)
	p.every = between(r, 60*time.Millisecond, 200*time.Millisecond)
	p.guard = between(r, 500*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard
	p.extend, p.toEnd, p.write = some(r, 0.5), 0.5+0.5*r.Float64(), 1
	p.length = between(r, 2*time.Second, 5*time.Second)
	p.timeout, p.heartbeat = 2*time.Second, 3*time.Second // so that connections survive a freeze
	p.frozen = r.IntN(2) == 0
}

// paused chooses suspensions of machines, for up to several TTLs, during which the steady clock and the wall clock of
// the machine stop, too. Locks are used until they expire. Heartbeats are frequent, because a client notices such a
// suspension only at its next heartbeat.
func (p *plan) paused(r *rand.Rand) {
	p.weights[suspend] = 3
	p.weights[cutOff] = pick(r, 0, 0, 1)
	p.guard = between(r, time.Second, 3*time.Second)
	p.least, p.most = p.guard/2, p.guard
	p.extend, p.toEnd, p.write = some(r, 0.3), 0.5+0.5*r.Float64(), 1
	p.length = between(r, 4*time.Second, 8*time.Second)
	p.timeout, p.heartbeat = 2*time.Second, between(r, 50*time.Millisecond, 200*time.Millisecond)
	p.every *= 4
}

// shownAfter returns the maximum time from the end of a pause until replies of the masters have shown the full length
// of the pause to the client: the interval of heartbeats, two round trips, and the longest pause that is not detected.
func (p *plan) shownAfter() time.Duration {
	return p.heartbeat + 4*(p.latency+p.jitter) + 100*time.Millisecond
}

// setback chooses masters that lose their data, and wall clocks of clients that are set during their quarantine.
func (p *plan) setback(r *rand.Rand) {
	p.few(r, crashEmpty, flush, failback)
	p.weights[turnBack] = 2
	p.weights[turnOn] = pick(r, 0, 0, 1)
	p.clients, p.frozen = pick(r, 1, 2, 3), false
	p.every /= 2
}

// leaving chooses Lockers that are closed while they hold locks, calls wait, and masters hang.
func (p *plan) leaving(r *rand.Rand) {
	p.weights[leave] = 3
	p.weights[hang] = pick(r, 0, 1, 2)
	p.weights[cutOff] = pick(r, 0, 0, 1)
	p.busy = pick(r, 2, 3)
	p.extend, p.keep, p.hand = 0.9, 0.3, 0
	p.idle = between(r, time.Millisecond, 10*time.Millisecond)
	p.dwell = between(r, 5*time.Millisecond, 100*time.Millisecond)
	p.timeout = between(r, 50*time.Millisecond, 300*time.Millisecond)
}

// strangers chooses clients whose lists contain only some of the masters, or clients with the same label.
func (p *plan) strangers(r *rand.Rand) {
	p.weights[cutOff] = pick(r, 0, 1)
	p.toEnd, p.hand = 0.2, 0
	if p.oneLabel = r.IntN(2) == 0; p.oneLabel {
		return
	}
	p.masters = 5
	p.lists = make([][]int, p.clients)
	if r.IntN(2) == 0 {
		p.rollingChange(r)
		return
	}
	some := [][]int{{0, 1, 2}, {2, 3, 4}, {1, 2, 3}, {4}, {0, 1, 2, 3}}
	for i := 1; i < p.clients; i++ {
		if i == 1 || r.IntN(2) == 0 {
			p.lists[i] = some[r.IntN(len(some))]
		}
	}
}

// rollingChange chooses some clients with a list of masters that differs from the list of the others. No link is cut: a
// client must see the records of all masters that are up, because otherwise the first records of masters could
// conflict.
func (p *plan) rollingChange(r *rand.Rand) {
	p.slowly(r, between(r, 2*time.Second, 20*time.Second))
	p.rolling, p.bare = true, r.IntN(3) > 0
	p.masters = 4
	p.lists[0] = []int{0, 1, 2}
	others := [][]int{{0, 1, 3}, {0, 1, 3}, {1, 3, 2}, {0, 1, 2, 3}, {1, 3}}
	if r.IntN(4) == 0 {
		p.masters = 5
		p.lists[0] = []int{0, 1, 2, 3, 4}
		others = [][]int{{0, 1, 2}, {4, 2, 3}, {1, 3, 4}}
	}
	other := others[r.IntN(len(others))]
	for i := 1; i < p.clients; i++ {
		if p.lists[i] = p.lists[0]; i == 1 || r.IntN(2) == 0 {
			p.lists[i] = other
		}
	}
	p.weights = [faultKinds]int{}
	if r.IntN(2) == 0 {
		p.few(r, crashEmpty, crashFull, flush)
	}
}

// emptied chooses masters that all lose their data together, and clients whose max TTL differs from the deployment's.
func (p *plan) emptied(r *rand.Rand) {
	p.guard = between(r, 800*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard
	p.weights[notify] = 1
	p.toEnd, p.extend, p.hand = 0.9, some(r, 0.5), 0
	p.every, p.idle = between(r, 300*time.Millisecond, 800*time.Millisecond), 5*time.Millisecond
	p.unlike = between(r, 0, 15*time.Millisecond)
	p.length = between(r, 2*time.Second, 4*time.Second)
	p.heartbeat = between(r, 50*time.Millisecond, 200*time.Millisecond)
	if p.long = r.IntN(2) == 0; p.long {
		return
	}
	// A quarantine lasts at least half a minute, so only a longer max TTL makes a difference.
	p.weights[emptyAll] = 1
	p.guard = between(r, 50*time.Second, 90*time.Second)
	p.least, p.most, p.dwell, p.heartbeat = 45*time.Second, p.guard, time.Second, between(r, time.Second, 3*time.Second)
	p.every, p.length, p.idle = between(r, 40*time.Second, 80*time.Second), 3*p.guard, 5*time.Second
}

// lasting chooses a minority of masters that is partitioned away forever, and almost no other faults.
func (p *plan) lasting(r *rand.Rand) {
	p.masters, p.clients, p.busy = pick(r, 3, 4, 5, 5), pick(r, 2, 3), 1
	p.guard = between(r, 900*time.Millisecond, 1500*time.Millisecond)
	p.latency = between(r, 100*time.Microsecond, time.Millisecond)
	p.jitter = between(r, 10*time.Microsecond, time.Millisecond)
	p.apart = r.Perm(p.masters)[:r.IntN((p.masters-1)/2+1)]
	way := r.IntN(3)
	p.up, p.down = way != 1, way != 0
	p.cutAfter = between(r, 0, p.length)
	p.few(r, cutOff, loseReply, hang, suspend, restart)
	p.every *= 2
}

// crowd chooses a client with many waiters that dies, and clients that run for longer than a dead waiter may stay
// queued. If no master notices the death, there are only a few dead waiters, because each delays the others by a
// second.
func (p *plan) crowd(r *rand.Rand) {
	p.clients, p.busy, p.names = 3, 3, []string{"a"}
	p.waiters = pick(r, 15, 20, 30, 40)
	if p.silent = r.IntN(2) == 0; p.silent {
		p.waiters = pick(r, 1, 1, 2, 3)
	}
	p.guard = between(r, 500*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard
	p.toEnd, p.retry, p.fair, p.hand, p.keep = 0, 0, 1, 0, 0
	p.idle, p.dwell = time.Millisecond, between(r, 50*time.Millisecond, 300*time.Millisecond)
	p.length, p.every = 26*time.Second, 10*time.Second
	p.weights[cutOff] = pick(r, 0, 1)
}

// lonely chooses a client that reaches only a minority of the masters, and whose calls have the highest priority. One
// of the masters that it cannot reach is partitioned away from all clients.
func (p *plan) lonely(r *rand.Rand) {
	p.masters, p.clients, p.busy, p.names = pick(r, 3, 5, 5), pick(r, 2, 3), 1, []string{"a"}
	p.guard = between(r, 900*time.Millisecond, 1500*time.Millisecond)
	p.hidden = r.Perm(p.masters)[:p.masters/2+1]
	p.apart, p.up, p.down = p.hidden[:1], true, true // so the other clients need a master that the guest reaches
	p.cutAfter = between(r, 0, p.length/2)
	p.toEnd, p.retry, p.fair, p.hand, p.keep = 0, 0, 0.5, 0, 0
	p.idle, p.dwell = time.Millisecond, between(r, time.Millisecond, 30*time.Millisecond)
	p.weights[cutOff] = pick(r, 0, 1)
	p.every *= 2
}

// far chooses a distant client that waits in the queue, and near clients that retry all the time.
func (p *plan) far(r *rand.Rand) {
	p.masters, p.clients, p.busy, p.names = pick(r, 3, 3, 5), 2, pick(r, 1, 2), []string{"a"}
	p.away = between(r, 20*time.Millisecond, 120*time.Millisecond)
	p.timeout = time.Second
	p.guard = between(r, 900*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard
	p.toEnd, p.retry, p.hand, p.keep = 0, 1, 0, 0
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 20*time.Millisecond)
	p.length, p.every = between(r, 6*time.Second, 8*time.Second), time.Minute
}

// several chooses clients that sometimes lock several names together, and sometimes only one of these names.
func (p *plan) several(r *rand.Rand) {
	p.few(r, split, cutOff, stall, loseReply, suspend, restart, flush)
	p.together, p.names = true, []string{"a", "b", "c"}[:pick(r, 2, 3, 3)]
	p.clients, p.hand = pick(r, 2, 3, 4), 0
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 100*time.Millisecond)
	p.every *= 2
}

// minimum chooses locks with a minimum hold, most of which are released before its end, and Lockers that are closed.
func (p *plan) minimum(r *rand.Rand) {
	p.few(r, split, cutOff, stall, loseReply, suspend, restart, crashEmpty, flush)
	p.minHold, p.together = true, r.IntN(4) == 0
	p.weights[notify] = 2
	p.guard = between(r, 500*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/4, p.guard/2
	p.clients, p.hand = pick(r, 2, 3, 4), 0
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 200*time.Millisecond)
	p.weights[leave] = pick(r, 0, 1)
	p.weights[turnOn] = pick(r, 0, 1)
	p.length = between(r, 3*time.Second, 6*time.Second)
	p.every *= 2
}

// share chooses names with many readers and few writers, or readers that arrive endlessly and few faults.
func (p *plan) share(r *rand.Rand) {
	p.readers, p.reads, p.hand = true, 0.4+0.5*r.Float64(), some(r, 0.5)
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 100*time.Millisecond)
	p.busy = pick(r, 2, 3)
	if p.endless = r.IntN(4) == 0; p.endless {
		p.few(r, split, cutOff, stall, loseReply)
		p.every *= 2
		return
	}
	p.few(r, split, cutOff, stall, loseReply, hang, suspend, restart, crashEmpty, flush, failback)
	p.weights[leave], p.weights[notify] = pick(r, 0, 0, 1), 1
	p.spikes, p.spike = some(r, 0.1), between(r, p.timeout, 6*p.timeout)
	p.twice = some(r, 0.05)
	p.toEnd = some(r, 0.3)
	if r.IntN(2) == 0 { // leftovers are detected if they last longer than the delivery of pending releases
		p.heartbeat, p.timeout = p.heartbeat/4, p.timeout/2
	}
}

// lapses chooses holders that call Extend, masters that lose votes, and TTLs of which some are shorter than the timeout
// of the other client.
func (p *plan) lapses(r *rand.Rand) {
	p.masters, p.clients, p.busy, p.names = 3, 2, 1, []string{"a"}
	p.timeout = between(r, 450*time.Millisecond, 600*time.Millisecond)
	p.heartbeat = between(r, 300*time.Millisecond, time.Second)
	if r.IntN(2) == 0 {
		p.patience = 2 * p.timeout
	}
	p.least, p.most = p.timeout/2, 5*(p.timeout+p.patience)/4
	p.guard = p.most
	p.weights[lapseOne], p.every, p.length = 1, 200*time.Millisecond, 6*p.timeout+3*p.patience+time.Second
	p.readers, p.reads = r.IntN(3) == 0, r.Float64()
	p.toEnd, p.extend, p.reenter, p.hand, p.hurry, p.keep, p.longest = 0.9, 0, 0, 0, 0, 0, p.length
	p.byHand, p.retry, p.rate = 0.5+0.5*r.Float64(), 1, 0
	p.idle, p.dwell = between(r, time.Millisecond, 5*time.Millisecond), between(r, p.timeout/20, p.timeout/8)
}

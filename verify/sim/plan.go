package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A kind determines what a run concentrates on.
type kind int

// The kinds. Runs of the kind excess include faults that are not tolerated according to the documentation.
const (
	contention  kind = iota // many calls compete for few names, over links with different delays
	amnesia                 // masters restart empty, are flushed, are restored from a snapshot, or fail back
	lateness                // messages are delayed, lost, duplicated, or arrive on an old connection
	partition               // links are cut, in one or both directions
	suspension              // machines sleep or are frozen, and clients extend their locks soon after waking up
	clocks                  // clocks run as wrong as the drift allows, and locks are used until they expire
	oldness                 // all clients are idle until fences have expired, while clocks of clients stop
	deployments             // clients with different max TTLs
	mixture                 // any combination from the seed
	excess                  // faults that are not tolerated
	changes                 // the masters are changed; clients are notified at different times, or one of them never
	freezes                 // a process, a machine, or all machines stop for less than the validity of a lock
	setback                 // wall clocks jump back and forward by hours, while masters are in quarantine and calls wait
	leaving                 // Lockers are closed with contexts in any state, while masters hang
	strangers               // clients with different lists of masters, or with the same label
	emptied                 // all masters lose their data together; clients have different max TTLs
	backups                 // masters get another replication id without loss of data
	crowd                   // many waiters die together, while others continue
	lasting                 // a minority is partitioned away forever; all clients, also a new one, must acquire locks
	lonely                  // a client reaches only a minority, forever, and is first in the queue
	quitting                // many calls of a client end without a release, and the client continues
	far                     // a distant client waits while near clients retry all the time
	several                 // several names are locked together, in any order
	minimum                 // locks with a minimum hold, also after an early unlock
	readers                 // names with readers and writers
	paused                  // machines stop together with both of their clocks
	lapses                  // a master forgets a vote while messages of a round that may repair it are late
	lingers                 // locks linger after Unlock
	jumps                   // the clocks of a minority of the masters jump
	durables                // the append-only files of durable masters are off for a while
	records                 // admission records vanish, come back, or get a TTL while the servers run
)

// newest maps seeds, modulo 40, to the newest kinds. All other seeds have the kinds that they had before.
var newest = map[uint64]kind{32: records, 34: durables, 35: jumps}

// kindOf returns the kind of a run. The last digit of the seed selects a list of kinds, which alternate.
func kindOf(s *Setup) kind {
	if i := slices.Index(kindNames[:], s.Kind); i >= 0 {
		return kind(i)
	}
	if k, ok := newest[s.Seed%40]; ok {
		return k
	}
	list := kindsOf[s.Seed%10]
	return list[s.Seed/10%uint64(len(list))]
}

// kindsOf lists the kinds of runs, indexed by the last digit of the seed.
var kindsOf = [10][]kind{
	{contention, freezes, far}, {amnesia, setback}, {lateness, leaving, quitting}, {partition, strangers, several},
	{suspension, emptied, minimum}, {clocks, backups, readers}, {oldness, lasting, paused}, {deployments, crowd},
	{mixture, changes}, {excess, lonely, lapses, lingers},
}

var kindNames = [...]string{
	"contention", "amnesia", "lateness", "partition", "suspension", "clocks", "oldness", "deployments",
	"mixture", "excess", "changes", "freezes", "setback", "leaving", "strangers",
	"emptied", "backups", "crowd", "lasting", "lonely", "quitting", "far", "several", "minimum", "readers",
	"paused", "lapses", "lingers", "jumps", "durables", "records",
}

// A plan contains everything that is drawn before a run begins, for example which faults occur and how often. Each run
// has only some kinds of faults, but they occur often: such runs find more violations than runs in which each kind
// occurs a few times.
type plan struct {
	kind kind
	size
	times
	network
	weather
	habits
	manners
	extras
	move *move // the change of the masters; nil for none
}

// A size holds the numbers of masters, clients and workers.
type size struct {
	masters, clients, busy int // busy is the number of workers per client
	names                  []string
}

// times holds the durations of a run.
type times struct {
	guard              time.Duration   // the max TTL of the deployment
	guards             []time.Duration // the max TTL of each client
	least, most        time.Duration   // shortest and longest TTL
	length             time.Duration   // how long the clients work
	heartbeat, timeout time.Duration
	patience           time.Duration // by this much the timeout of the second client is longer
}

// A network describes the delays and duplicates of messages.
type network struct {
	latency, jitter, spike time.Duration
	spikes                 float64       // probability that a message is late by up to spike
	unlike                 time.Duration // maximum additional delay of a link, drawn for each direction
	twice                  float64       // probability that a message is executed twice
}

// The weather describes the faults of a run.
type weather struct {
	every   time.Duration   // mean time from fault to fault
	weights [faultKinds]int // weight of each fault
	rate    float64         // error of the rates of the clocks
	lean    float64         // 1 if the masters' clocks are fast and the clients' slow, -1 if the opposite
	spread  time.Duration   // maximum initial difference between the masters' clocks
	frozen  bool            // a suspension or a freeze also stops the boot clock
	beyond  bool            // includes faults that are not tolerated
}

// Habits describe how a worker uses a lock. Fields of type float64 are probabilities.
type habits struct {
	idle                     time.Duration // longest pause between two calls
	dwell                    time.Duration // longest time that a lock is used
	toEnd, extend, reenter   float64       // a lock is used until it expires; is extended in the background; is re-entered
	hand, hurry, write, keep float64       // export or downgrade; Extend after waking up; write; no release of a lost lock
	again                    float64       // probability that a handle is delivered twice
	longest                  time.Duration // a hold that is used until it expires is used for at least this time
	byHand                   float64       // probability that a holder calls Extend after a pause
	values                   float64       // probability that a holder sets the value of its lock before a pause
}

// manners holds the fractions of calls with a retry policy, of fair calls and of calls with local hand-offs, and the
// behaviour of each client's trace callbacks.
type manners struct {
	retry, fair, handoff float64
	callbacks            []callback
}

// A callback describes what the vote callback of a client does in addition to recording the vote for the checks.
type callback int

const (
	returns callback = iota
	blocks           // until the workers have ended; until then, no event of the client is delivered
	panics
)

// draw returns the plan of a run.
func draw(s *Setup) plan {
	r := rand.New(rand.NewPCG(s.Seed, 0x9e3779b97f4a7c15))
	p := plan{kind: kindOf(s)}
	p.masters = pick(r, 3, 3, 3, 3, 5, 5, 2, 4)
	p.clients = pick(r, 2, 2, 3, 3, 4)
	p.busy = pick(r, 1, 1, 2, 3)
	p.names = []string{"a", "b"}[:pick(r, 1, 1, 1, 2)]
	p.guard = between(r, 300*time.Millisecond, 1200*time.Millisecond)
	p.least, p.most = 40*time.Millisecond, p.guard
	if r.IntN(2) == 0 {
		p.most = between(r, 80*time.Millisecond, p.guard)
	}
	p.length = between(r, 800*time.Millisecond, 2500*time.Millisecond)
	p.heartbeat = between(r, 300*time.Millisecond, time.Second)
	p.timeout = between(r, 30*time.Millisecond, 80*time.Millisecond)
	p.latency = between(r, 100*time.Microsecond, 2*time.Millisecond)
	p.jitter = between(r, 10*time.Microsecond, 3*time.Millisecond)
	p.every = between(r, 40*time.Millisecond, 250*time.Millisecond)
	p.rate, p.lean = 0.0045*float64(pick(r, 0, 1, 1)), float64(pick(r, 1, 1, -1))
	p.spread = between(r, 0, p.guard/8)
	p.idle = between(r, time.Millisecond, 60*time.Millisecond)
	p.dwell = between(r, 5*time.Millisecond, 300*time.Millisecond)
	p.extend = r.Float64()
	p.toEnd, p.reenter, p.hand = some(r, 0.3), some(r, 0.3), some(r, 0.2)
	p.hurry, p.write, p.keep = some(r, 0.3), r.Float64(), some(r, 0.1)
	p.frozen = r.IntN(3) == 0
	p.retry, p.fair, p.handoff = some(r, 0.8), some(r, 0.6), r.Float64()
	if p.kind > changes {
		p.stressNewer(r)
	} else {
		p.stress(r)
	}
	more := rand.New(rand.NewPCG(s.Seed, 3)) // a separate source, so that the plans of older seeds do not change
	p.again = some(more, 0.7)
	if p.again > 0 && (p.kind == amnesia || p.kind == strangers) {
		p.hand = 0.4 * more.Float64()
	}
	p.drawSlots(rand.New(rand.NewPCG(s.Seed, 4)))
	p.drawValues(rand.New(rand.NewPCG(s.Seed, 5)))
	p.drawAbort(rand.New(rand.NewPCG(s.Seed, 6)))
	if p.kind == jumps {
		p.jumps(rand.New(rand.NewPCG(s.Seed, 7)))
		p.drawJumpSlots(rand.New(rand.NewPCG(s.Seed, 10)))
	}
	if p.kind == durables {
		p.durables(rand.New(rand.NewPCG(s.Seed, 9)))
	}
	if p.kind == records {
		p.records(rand.New(rand.NewPCG(s.Seed, 8)))
	}
	p.guards = make([]time.Duration, p.clients)
	for i := range p.guards {
		p.guards[i] = p.guard
		switch {
		case p.kind == deployments && i > 0 && r.IntN(2) == 0, p.weights[emptyAll] > 0 && i > 0:
			p.guards[i] = between(r, 10*time.Second, 30*time.Second)
		case p.long && i == p.clients-1:
			p.guards[i] = 2 * p.guard
		}
	}
	p.callbacks = make([]callback, p.clients+2) // the callbacks of a guest and of a dying client return
	if p.kind <= mixture || p.kind == lapses {
		for i := range p.clients {
			p.callbacks[i] = callback(pick(more, 0, 0, 0, 0, 0, 0, int(blocks), int(panics)))
		}
	}
	return p
}

// stress chooses the faults according to the kind.
func (p *plan) stress(r *rand.Rand) {
	switch p.kind {
	case contention:
		p.contention(r)
	case amnesia:
		p.amnesia(r)
	case lateness:
		p.few(r, stall, cutOff, loseReply, hang, refusal, crashFull, restart)
		p.spikes, p.spike = some(r, 0.1), between(r, p.timeout, 6*p.timeout)
		p.twice = some(r, 0.1)
		if r.IntN(2) == 0 { // leftovers are detected if they last longer than the delivery of pending releases
			p.heartbeat, p.timeout = p.heartbeat/4, p.timeout/2
			p.least, p.most = p.guard/4, p.guard
		}
	case partition:
		p.few(r, split, splitUp, splitDown, cutOff, restart)
	case suspension:
		p.suspension(r)
	case clocks:
		p.few(r, turnBack, turnOn, slew)
		p.rate, p.lean, p.toEnd, p.extend = 0.0045, 1, 0.7, 0.2
		p.least = p.guard / 2
		p.most = p.guard
		p.idle = between(r, time.Millisecond, 5*time.Millisecond)
	case oldness:
		p.weights[suspend] = 1
		p.every = 30 * time.Second
		p.length, p.heartbeat, p.timeout = 300*time.Second, 5*time.Minute, 5*time.Minute // connections survive a suspension
		p.idle, p.frozen = 140*time.Second, r.IntN(3) > 0
		p.clients, p.busy = pick(r, 2, 3), 1
		p.most, p.rate = min(p.most, 500*time.Millisecond), 0
	case deployments: // locks on a bare quorum that far outlast the shortest quarantine
		p.few(r, crashEmpty, flush, restore, failback)
		p.weights[split] = pick(r, 2, 4, 6)
		p.slowly(r, between(r, 90*time.Second, 150*time.Second))
		p.least, p.every, p.masters = 3*p.guard/4, between(r, 6*time.Second, 15*time.Second), pick(r, 3, 3, 3, 4, 5)
		p.toEnd, p.extend = 0.8, some(r, 0.4)
	case changes:
		p.change(r)
	default:
		p.mixed(r)
	}
}

// contention chooses different delays of the links, or split votes, or ballots that are far behind.
func (p *plan) contention(r *rand.Rand) {
	p.timeout *= 2
	p.unlike = between(r, 0, p.timeout/3)
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 30*time.Millisecond)
	p.retry = float64(pick(r, 0, 1, 2)) / 2
	p.weights[split] = pick(r, 0, 1, 2)
	switch r.IntN(3) {
	case 0: // a client that was frozen estimates the masters' time wrongly until its next heartbeat
		p.weights[suspend], p.frozen = 2, true
		p.timeout, p.heartbeat = time.Second, 3*time.Second
		p.every, p.toEnd, p.extend = p.every/2, 0.3, 0.3
		p.masters, p.most = 3, 300*time.Millisecond
	case 1: // split votes over a slow network, and locks that are used until they expire
		p.latency = between(r, 3*time.Millisecond, 8*time.Millisecond)
		p.jitter = between(r, time.Millisecond, 15*time.Millisecond)
		p.masters, p.clients, p.most, p.unlike = pick(r, 3, 3, 5), pick(r, 3, 4), 250*time.Millisecond, 0
		p.toEnd, p.extend, p.hand = 0.8, 0.1, 0
	}
}

// amnesia chooses masters that lose their data. In short runs they do not vote again; in long runs their quarantines
// end.
func (p *plan) amnesia(r *rand.Rand) {
	p.heartbeat = between(r, 100*time.Millisecond, 400*time.Millisecond)
	p.guard = max(p.guard, 2*p.heartbeat+4*p.timeout)
	p.least, p.most = p.guard/2, p.guard
	p.toEnd, p.extend, p.hand = 0.3+0.5*r.Float64(), 0.5*r.Float64(), 0
	switch r.IntN(3) {
	case 0:
		p.few(r, crashEmpty, crashFull, flush, restore, failback, scriptFlush)
		p.every /= 2
	case 1:
		p.few(r, crashEmpty, crashFull, flush, restore, failback, scriptFlush)
		p.slowly(r, between(r, 5*time.Second, 40*time.Second))
	default: // another client can win a lock that one master has lost only if a third master never had it
		p.weights[failback], p.masters, p.guard, p.busy = 2, 3, 1200*time.Millisecond, 1
		p.least, p.most, p.toEnd, p.extend, p.heartbeat = time.Second, p.guard, 0.9, 0.1, 100*time.Millisecond
		p.every /= 2
	}
	p.weights[split] += 1 + r.IntN(4)
}

// slowly chooses a deployment whose max TTL is guard, and a run long enough for quarantines to end.
func (p *plan) slowly(r *rand.Rand, guard time.Duration) {
	p.guard, p.least, p.most = guard, guard/4, guard
	p.length = 2*max(guard, leastQuarantine) + between(r, 10*time.Second, 60*time.Second)
	p.every = between(r, p.length/20, p.length/6)
	p.heartbeat, p.busy = between(r, time.Second, 4*time.Second), 1
	p.idle, p.dwell = between(r, 10*time.Millisecond, 2*time.Second), between(r, 10*time.Millisecond, 5*time.Second)
}

// suspension chooses suspended machines.
func (p *plan) suspension(r *rand.Rand) {
	p.few(r, suspend, suspend, cutOff, stall, flush)
	p.hurry, p.keep = max(p.hurry, 0.3), 0.2
	p.masters = pick(r, 2, 3, 4, 5)
	p.most = min(p.most, 300*time.Millisecond)
	if r.IntN(2) == 0 { // so that connections survive a suspension
		p.timeout, p.heartbeat = 2*time.Second, 3*time.Second
	}
	if r.IntN(3) == 0 { // a client wakes up after its TTL, and extends its lock after another client has held the name
		p.masters, p.clients, p.hurry, p.extend = pick(r, 2, 4), 2, 0.9, 0.2
		p.most, p.dwell, p.toEnd = 120*time.Millisecond, 100*time.Millisecond, 0.5
	}
}

// few gives a weight to some faults of the list, at least to one.
func (p *plan) few(r *rand.Rand, list ...fault) {
	for _, f := range list {
		p.weights[f] += r.IntN(4)
	}
	p.weights[list[r.IntN(len(list))]] += 2
}

func (p *plan) mixed(r *rand.Rand) {
	for f := range olderFaults - beyondFaults {
		if r.IntN(3) == 0 {
			p.weights[f] = 1 + r.IntN(3)
		}
	}
	p.weights[hang]++
	p.spikes, p.spike, p.twice = some(r, 0.05), between(r, p.timeout, 4*p.timeout), some(r, 0.05)
	if r.IntN(3) == 0 {
		p.unlike = between(r, 0, p.timeout/3)
	}
	if p.kind == excess {
		p.beyond = true
		for f := olderFaults - beyondFaults; f < olderFaults; f++ {
			p.weights[f] = r.IntN(6)
		}
		p.rate = 0.05 * r.Float64()
	}
}

// rest returns the time after which, without faults, every pending release has been delivered.
func (p *plan) rest() time.Duration {
	if p.kind == oldness { // connections never break in this kind
		return time.Second
	}
	return 2*p.heartbeat + 4*p.timeout + 2*redialEvery + 2*p.unlike
}

// String describes the plan.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d masters, %d clients with %d workers each, names %v, max TTL %v (of the clients %v), "+
		"TTLs %v to %v, for %v\n", kindNames[p.kind], p.masters, p.clients, p.busy, p.names, p.guard, p.guards,
		p.least, p.most, p.length)
	fmt.Fprintf(&b, "  heartbeat %v, timeout %v + %v, latency %v + %v, with probability %.3f + %v; duplicates %.3f; "+
		"clock rates wrong by %.4f, clocks %v apart; frozen %v", p.heartbeat, p.timeout, p.patience, p.latency, p.jitter,
		p.spikes, p.spike, p.twice, p.rate, p.spread, p.frozen)
	return b.String()
}

func pick(r *rand.Rand, list ...int) int { return list[r.IntN(len(list))] }

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return (from + time.Duration(r.Int64N(int64(to-from)+1))).Round(10 * time.Microsecond)
}

// some returns 0 half of the time, and otherwise a value up to most.
func some(r *rand.Rand, most float64) float64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return most * r.Float64()
}

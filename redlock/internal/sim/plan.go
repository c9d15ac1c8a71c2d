package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A kind is what a run puts the weight on. It is the seed modulo ten, so that every tenth seed is of the same; of those of
// the mixture every other is one in which the masters are changed.
type kind int

// The kinds. In the last one faults go beyond what the documentation says is survived; see plan.beyond.
const (
	contention kind = iota // no faults but a network of unlike delays: many want one name
	amnesia                // masters restart empty, are flushed, restored from a snapshot, fail back
	lateness               // messages that stay on their way, are lost, come twice, come on an old connection
	partition              // links cut, one way or both
	suspension             // clients suspended and frozen, awake again, and in a hurry
	clocks                 // rates as wrong as the drift allows for, holds used to their end
	oldness                // nobody locks for longer than bars are remembered, clients lose time meanwhile
	fleets                 // programs with unlike guard times
	mixture                // whatever the seed draws
	excess                 // faults beyond what is survived
	changes                // the masters are changed; everybody is told at another time, and one perhaps never
)

// kindOf is the kind of a seed.
func kindOf(seed uint64) kind {
	k := kind(seed % uint64(changes))
	if k == mixture && seed/uint64(changes)%2 == 1 {
		k = changes
	}
	return k
}

var kindNames = [...]string{"contention", "amnesia", "lateness", "partition", "suspension", "clocks", "oldness", "fleets", "mixture", "excess", "changes"}

// A plan is all that is drawn before a run begins. Each seed draws which faults there are at all, and how hard: a run in
// which everything happens a little finds less than many in which few things happen often.
type plan struct {
	kind                     kind
	masters, clients, busy   int // busy: workers of one client
	names                    []string
	guard                    time.Duration   // of the fleet
	guards                   []time.Duration // of each client
	least, most              time.Duration   // TTLs
	length                   time.Duration   // how long the clients work
	heartbeat, timeout       time.Duration
	latency, jitter, spike   time.Duration
	spikes                   float64         // chance of a message to be late by up to spike
	unlike                   time.Duration   // a link may take that much longer than another, each way by itself
	twice                    float64         // chance of a message to be executed twice
	every                    time.Duration   // mean time from fault to fault
	weights                  [faultKinds]int // how often each fault is drawn
	rate                     float64         // error of the rates of the clocks
	lean                     float64         // 1 where the masters run fast and the clients slow, -1 the other way
	spread                   time.Duration   // how far the masters' clocks are apart at the beginning
	idle                     time.Duration   // longest pause of a worker between two calls
	dwell                    time.Duration   // longest time that a lock is used
	toEnd, extend, reenter   float64
	hand, hurry, write, keep float64
	retry, fair, handOn      float64 // shares of the calls that try again by themselves, that wait in turn, that hand on
	frozen                   bool    // suspensions stop the clock that nobody sets, too
	beyond                   bool
	move                     *move // how the masters are changed; nil: they stay
}

// draw makes the plan of a seed.
func draw(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	p := plan{kind: kindOf(seed)}
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
	p.latency, p.jitter = between(r, 100*time.Microsecond, 2*time.Millisecond), between(r, 10*time.Microsecond, 3*time.Millisecond)
	p.every = between(r, 40*time.Millisecond, 250*time.Millisecond)
	p.rate, p.lean = 0.0045*float64(pick(r, 0, 1, 1)), float64(pick(r, 1, 1, -1))
	p.spread = between(r, 0, p.guard/8)
	p.idle, p.dwell = between(r, time.Millisecond, 60*time.Millisecond), between(r, 5*time.Millisecond, 300*time.Millisecond)
	p.extend = r.Float64()
	p.toEnd, p.reenter, p.hand = some(r, 0.3), some(r, 0.3), some(r, 0.2)
	p.hurry, p.write, p.keep = some(r, 0.3), r.Float64(), some(r, 0.1)
	p.frozen = r.IntN(3) == 0
	p.retry, p.fair, p.handOn = some(r, 0.8), some(r, 0.6), r.Float64()
	p.stress(r)
	p.guards = make([]time.Duration, p.clients)
	for i := range p.guards {
		p.guards[i] = p.guard
		if p.kind == fleets && i > 0 && r.IntN(2) == 0 {
			p.guards[i] = between(r, 100*time.Millisecond, p.guard/2)
		}
	}
	return p
}

// stress draws the faults, by the kind of the run.
func (p *plan) stress(r *rand.Rand) {
	switch p.kind {
	case contention:
		p.timeout *= 2
		p.unlike = between(r, 0, p.timeout/3)
		p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, time.Millisecond, 30*time.Millisecond)
		p.retry = float64(pick(r, 0, 1, 2)) / 2 // who stands in line meets reservations of half a second, long for these runs
		p.weights[split] = pick(r, 0, 1, 2)
		switch r.IntN(3) {
		case 0: // ballots that are long behind: who was frozen knows the masters' time wrongly, until a heartbeat
			p.weights[suspend], p.frozen = 2, true
			p.timeout, p.heartbeat = time.Second, 3*time.Second
			p.every, p.toEnd, p.extend = p.every/2, 0.3, 0.3
			p.masters, p.most = 3, 300*time.Millisecond
		case 1: // split votes over a slow network, and holds that are used to their end
			p.latency, p.jitter, p.unlike = between(r, 3*time.Millisecond, 8*time.Millisecond), between(r, time.Millisecond, 15*time.Millisecond), 0
			p.masters, p.clients, p.most = pick(r, 3, 3, 5), pick(r, 3, 4), 250*time.Millisecond
			p.toEnd, p.extend, p.hand = 0.8, 0.1, 0
		}
	case amnesia:
		p.heartbeat = between(r, 100*time.Millisecond, 400*time.Millisecond)
		p.guard = max(p.guard, 2*p.heartbeat+4*p.timeout)
		p.least, p.most = p.guard/2, p.guard
		p.toEnd, p.extend, p.hand = 0.3+0.5*r.Float64(), 0.5*r.Float64(), 0
		if r.IntN(3) > 0 {
			p.few(r, crashEmpty, crashFull, flush, restore, failback, scriptFlush)
		} else { // what one hold has lost on a master is another's only where a third master did not have it
			p.weights[failback], p.masters, p.guard, p.busy = 2, 3, 1200*time.Millisecond, 1
			p.least, p.most, p.toEnd, p.extend, p.heartbeat = time.Second, p.guard, 0.9, 0.1, 100*time.Millisecond
		}
		p.weights[split] += 1 + r.IntN(4)
		p.every /= 2
	case lateness:
		p.few(r, stall, cutOff, loseReply, hang, refusal, crashFull, restart)
		p.spikes, p.spike = some(r, 0.1), between(r, p.timeout, 6*p.timeout)
		p.twice = some(r, 0.1)
		if r.IntN(2) == 0 { // what is not undone is seen if it lives longer than it takes to pay a debt
			p.heartbeat, p.timeout = p.heartbeat/4, p.timeout/2
			p.least, p.most = p.guard/4, p.guard
		}
	case partition:
		p.few(r, split, splitUp, splitDown, cutOff, restart)
	case suspension:
		p.few(r, suspend, suspend, cutOff, stall, flush)
		p.hurry, p.keep = max(p.hurry, 0.3), 0.2
		p.masters = pick(r, 2, 3, 4, 5)
		p.most = min(p.most, 300*time.Millisecond)
		if r.IntN(2) == 0 { // connections outlive a sleep
			p.timeout, p.heartbeat = 2*time.Second, 3*time.Second
		}
		if r.IntN(3) == 0 { // who wakes after his TTL tries to save what he had, while another has had it
			p.masters, p.clients, p.hurry, p.extend = pick(r, 2, 4), 2, 0.9, 0.2
			p.most, p.dwell, p.toEnd = 120*time.Millisecond, 100*time.Millisecond, 0.5
		}
	case clocks:
		p.few(r, turnBack, turnOn, slew)
		p.rate, p.lean, p.toEnd, p.extend = 0.0045, 1, 0.7, 0.2
		p.least = p.guard / 2
		p.most = p.guard
		p.idle = between(r, time.Millisecond, 5*time.Millisecond)
	case oldness:
		p.weights[suspend] = 1
		p.every = 20 * time.Second
		p.length, p.heartbeat, p.timeout = 150*time.Second, 5*time.Minute, 5*time.Minute // connections outlive a sleep
		p.idle, p.frozen = 70*time.Second, r.IntN(3) > 0
		p.clients, p.busy = pick(r, 2, 3), 1
		p.most, p.rate = min(p.most, 500*time.Millisecond), 0
	case fleets:
		p.few(r, crashEmpty, flush, restore, failback)
		p.toEnd, p.extend = max(p.toEnd, 0.3), 0.3
	case changes:
		p.change(r)
	default:
		p.mixed(r)
	}
}

// few gives some of these faults a weight.
func (p *plan) few(r *rand.Rand, list ...fault) {
	for _, f := range list {
		p.weights[f] += r.IntN(4)
	}
	p.weights[list[r.IntN(len(list))]] += 2
}

func (p *plan) mixed(r *rand.Rand) {
	for f := range faultKinds - beyondFaults {
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
		for f := faultKinds - beyondFaults; f < faultKinds; f++ {
			p.weights[f] = r.IntN(6)
		}
		p.rate = 0.05 * r.Float64()
	}
}

// rest is how long it takes, without faults, until every debt is paid.
func (p *plan) rest() time.Duration {
	if p.kind == oldness { // no connection ever breaks there
		return time.Second
	}
	return 2*p.heartbeat + 4*p.timeout + 2*redialEvery + 2*p.unlike
}

// String says the plan in words.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d masters, %d clients with %d workers each, names %v, guard time %v (of the clients %v), TTLs %v to %v, for %v\n",
		kindNames[p.kind], p.masters, p.clients, p.busy, p.names, p.guard, p.guards, p.least, p.most, p.length)
	fmt.Fprintf(&b, "  heartbeat %v, timeout %v, latency %v + %v, with a chance of %.3f + %v; twice %.3f; clocks wrong by %.4f, %v apart; frozen %v",
		p.heartbeat, p.timeout, p.latency, p.jitter, p.spikes, p.spike, p.twice, p.rate, p.spread, p.frozen)
	return b.String()
}

func pick(r *rand.Rand, list ...int) int { return list[r.IntN(len(list))] }

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return (from + time.Duration(r.Int64N(int64(to-from)+1))).Round(10 * time.Microsecond)
}

// some is 0 half of the time, else anything up to most.
func some(r *rand.Rand, most float64) float64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return most * r.Float64()
}

package integration

import (
	"testing"
	"time"
)

// Faults of servers.
var serverScenarios = []scenario{
	{name: "healthy", short: true, minority: true, fault: func(x *deployment) { x.wait(2 * time.Second) }},
	{name: "two of five paused", short: true, minority: true, fault: func(x *deployment) {
		each(x, Master.Pause, x.list[:2]...)
		x.wait(2 * time.Second)
		each(x, Master.Resume, x.list[:2]...)
	}},
	{name: "three of five paused", fault: func(x *deployment) {
		each(x, Master.Pause, x.list[:3]...)
		x.wait(scenarioTTL + time.Second)
		each(x, Master.Resume, x.list[:3]...)
	}},
	{name: "two of five killed, and back empty", short: true, minority: true, fault: func(x *deployment) {
		each(x, Master.Kill, x.list[3:]...)
		x.wait(time.Second)
		each(x, Master.Start, x.list[3:]...)
		x.voting()
	}},
	{name: "three of five killed, back empty, admitted by hand", fault: func(x *deployment) {
		each(x, Master.Kill, x.list[:3]...)
		x.wait(time.Second)
		each(x, Master.Start, x.list[:3]...)
		x.admitByHand()
	}},
	{name: "all five killed, and back from the AOF", setup: keepsAll, durable: true, ttl: 10 * time.Second, steady: true,
		fault: func(x *deployment) {
			each(x, Master.Kill, x.list...)
			each(x, Master.Start, x.list...)
			x.wait(time.Second)
		}},
	{name: "two of five off the network", setup: isCuttable, short: true, minority: true, fault: func(x *deployment) {
		each(x, Master.Cut, x.list[1:3]...)
		x.wait(2 * time.Second)
		each(x, Master.Join, x.list[1:3]...)
	}},
	{name: "three of five off the network", setup: isCuttable, fault: func(x *deployment) {
		each(x, Master.Cut, x.list[1:4]...)
		x.wait(scenarioTTL + time.Second)
		each(x, Master.Join, x.list[1:4]...)
	}},
}

func isCuttable(*testing.T) setup { return setup{cuttable: true} }

// keepsAll configures masters that lose no data, because each write is on disk before the reply.
func keepsAll(*testing.T) setup {
	return setup{args: []string{"--appendonly", "yes", "--appendfsync", "always"}}
}

// admitByHand does what an operator may do after a majority has lost its locks. The other masters are too few to grant
// or extend a lock, so after one TTL no client holds a lock. Without this admission, the masters that lost their data
// would vote only after five minutes, because they cannot learn the max TTL from the few other masters.
func (x *deployment) admitByHand() {
	x.Helper()
	x.wait(x.args.TTL + x.args.TTL/10)
	x.note("before admitting by hand: %s", x.states())
	x.admit()
	x.voting()
}

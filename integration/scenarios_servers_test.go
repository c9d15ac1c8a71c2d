package integration

import (
	"testing"
	"time"
)

// What happens to servers as a whole.
var serverScenarios = []scenario{
	{name: "healthy", short: true, minority: true, fault: func(x *fleet) { x.wait(2 * time.Second) }},
	{name: "two of five paused", short: true, minority: true, fault: func(x *fleet) {
		each(x, Master.Pause, x.list[:2]...)
		x.wait(2 * time.Second)
		each(x, Master.Resume, x.list[:2]...)
	}},
	{name: "three of five paused", fault: func(x *fleet) {
		each(x, Master.Pause, x.list[:3]...)
		x.wait(scenarioTTL + time.Second)
		each(x, Master.Resume, x.list[:3]...)
	}},
	{name: "two of five killed, and back empty", short: true, minority: true, fault: func(x *fleet) {
		each(x, Master.Kill, x.list[3:]...)
		x.wait(time.Second)
		each(x, Master.Start, x.list[3:]...)
		x.voting()
	}},
	{name: "three of five killed, back empty, admitted by hand", fault: func(x *fleet) {
		each(x, Master.Kill, x.list[:3]...)
		x.wait(time.Second)
		each(x, Master.Start, x.list[:3]...)
		x.admitByHand()
	}},
	{name: "all five killed, and back from the AOF", setup: keepsAll, durable: true, ttl: 10 * time.Second, steady: true, fault: func(x *fleet) {
		each(x, Master.Kill, x.list...)
		each(x, Master.Start, x.list...)
		x.wait(time.Second)
	}},
	{name: "two of five off the network", setup: isCuttable, short: true, minority: true, fault: func(x *fleet) {
		each(x, Master.Cut, x.list[1:3]...)
		x.wait(2 * time.Second)
		each(x, Master.Join, x.list[1:3]...)
	}},
	{name: "three of five off the network", setup: isCuttable, fault: func(x *fleet) {
		each(x, Master.Cut, x.list[1:4]...)
		x.wait(scenarioTTL + time.Second)
		each(x, Master.Join, x.list[1:4]...)
	}},
}

func isCuttable(*testing.T) setup { return setup{cuttable: true} }

// keepsAll is masters that forget nothing: each write is on disk before it is answered.
func keepsAll(*testing.T) setup {
	return setup{args: []string{"--appendonly", "yes", "--appendfsync", "always"}}
}

// admitByHand is what an operator may do when a majority has forgotten its locks. The others are too few to grant one,
// or to extend one that was held: after one TTL nobody holds any. Without that the masters that have forgotten vote
// again after five minutes, since their own guard time can no longer be read from enough others.
func (x *fleet) admitByHand() {
	x.Helper()
	x.wait(x.args.TTL + x.args.TTL/10)
	x.note("before admitting by hand: %s", x.states())
	x.admit()
	x.voting()
}

package integration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
)

// nightmareEnv sets the default of the flag -nightmare, for runs of several packages, which cannot pass this flag.
const nightmareEnv = "REDLOCK_TEST_NIGHTMARE"

// shortNightmare is the maximum duration without -long.
const shortNightmare = 5 * time.Second

var (
	nightmareFor  = flag.Duration("nightmare", nightmareDefault(), "duration of the nightmare; default: "+nightmareEnv)
	nightmareSeed = flag.Uint64("nightmare-seed", 0, "seed of the nightmare whose faults to repeat; 0: a new seed")
)

func nightmareDefault() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(nightmareEnv)); err == nil {
		return d
	}
	return 30 * time.Second
}

// All faults happen at random and combined, for the duration of -nightmare. The invariants of locks must hold
// throughout, and every client must be able to continue afterwards.
func TestNightmare(t *testing.T) {
	t.Parallel()
	seed := *nightmareSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("the seed is %d", seed)
	length := *nightmareFor
	if !long.Enabled() {
		length = min(length, shortNightmare)
	}
	n := &nightmare{rnd: rand.New(rand.NewPCG(seed, 0))}
	scenario{name: "the nightmare", links: true, setup: isCuttable, fault: func(x *deployment) {
		n.deployment = x
		x.note("seed %d", seed)
		for end := time.Now().Add(length); time.Now().Before(end); {
			n.round()
		}
		x.note("waiting until all masters vote")
		n.voting()
	}}.run(t)
	t.Logf("the log of faults has %d lines; the faults are: %s", len(n.deployment.faults), strings.Join(n.kinds(), ", "))
}

// A nightmare chooses the faults. Masters that may have lost their locks get time to be admitted again before other
// masters lose theirs. Losses by a majority are in separate scenarios, because an operator must end their quarantines.
type nightmare struct {
	*deployment

	rnd    *rand.Rand
	counts map[string]int
}

// A bane is one kind of fault. do begins the fault for some masters, by index. The function that do returns ends the
// fault, unless it is nil.
type bane struct {
	name string
	do   func(n *nightmare, some []int) (end func())
	most int // maximum number of masters affected
}

// forgetful lists the banes that make masters lose their data. At most one of them is active at a time.
var forgetful = []bane{
	{name: "restart empty", most: 2, do: func(n *nightmare, some []int) func() {
		each(n, Master.Kill, n.some(some)...)
		return func() { each(n, Master.Start, n.some(some)...) }
	}},
	{name: "flush", most: 2, do: func(n *nightmare, some []int) func() {
		n.try(n.some(some), "FLUSHALL")
		return nil
	}},
	{name: "replica for a while", most: 1, do: func(n *nightmare, some []int) func() {
		n.try(n.some(some), "REPLICAOF", "127.0.0.1", "1")
		return func() { n.try(n.some(some), "REPLICAOF", "NO", "ONE") }
	}},
}

// lasting lists the banes that disturb masters without loss of data.
var lasting = []bane{
	{name: "pause", most: 4, do: func(n *nightmare, some []int) func() {
		each(n, Master.Pause, n.some(some)...)
		return func() { each(n, Master.Resume, n.some(some)...) }
	}},
	{name: "off the network", most: 3, do: func(n *nightmare, some []int) func() {
		each(n, Master.Cut, n.some(some)...)
		return func() { each(n, Master.Join, n.some(some)...) }
	}},
	{name: "out of memory", most: 3, do: func(n *nightmare, some []int) func() {
		n.try(n.some(some), "CONFIG", "SET", "maxmemory", "1")
		return func() { n.try(n.some(some), "CONFIG", "SET", "maxmemory", "0") }
	}},
	{name: "kill connections", most: 5, do: func(n *nightmare, some []int) func() {
		n.try(n.some(some), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		return nil
	}},
	{name: "flush scripts", most: 5, do: func(n *nightmare, some []int) func() {
		n.try(n.some(some), "SCRIPT", "FLUSH")
		return nil
	}},
}

// crossing lists the banes that disturb links. They may be combined with those of lasting and personal.
var crossing = []bane{
	{name: "slow", most: 5, do: onLinks(func(n *nightmare) []toxic {
		return []toxic{slow(1+n.rnd.IntN(80), 1+n.rnd.IntN(60))}
	})},
	{name: "very slow", most: 2, do: onLinks(func(n *nightmare) []toxic {
		return []toxic{slow(400+n.rnd.IntN(800), 300)}
	})},
	{name: "modem", most: 5, do: onLinks(func(*nightmare) []toxic {
		return []toxic{modem("upstream", 7), modem("downstream", 7)}
	})},
	{name: "replies vanish", most: 3, do: onLinks(func(*nightmare) []toxic { return []toxic{swallow("downstream")} })},
	{name: "requests vanish", most: 3, do: onLinks(func(*nightmare) []toxic { return []toxic{swallow("upstream")} })},
	{name: "resets", most: 5, do: onLinks(func(n *nightmare) []toxic { return breakOff(6_000 + n.rnd.IntN(20_000)) })},
	{name: "refused", most: 3, do: func(n *nightmare, some []int) func() {
		for _, i := range some {
			n.links[i].down()
		}
		return func() {
			for _, i := range some {
				if err := n.links[i].up(); err != nil {
					n.Error(err)
				}
			}
		}
	}},
}

// personal lists the banes that affect a process of the workload.
var personal = []bane{
	{name: "stop a process", do: func(n *nightmare, _ []int) func() {
		w := n.workers[n.rnd.IntN(len(n.workers))]
		n.signal(w, stopSignal)
		n.wait(time.Duration(n.rnd.Int64N(int64(2 * scenarioTTL))))
		n.signal(w, continueSignal)
		return nil
	}},
	{name: "kill a process", do: func(n *nightmare, _ []int) func() {
		n.replace(n.workers[n.rnd.IntN(len(n.workers))])
		return nil
	}},
}

func onLinks(toxics func(n *nightmare) []toxic) func(n *nightmare, some []int) func() {
	return func(n *nightmare, some []int) func() {
		for _, i := range some {
			n.links[i].add(toxics(n)...)
		}
		return func() {
			for _, i := range some {
				n.links[i].clear()
			}
		}
	}
}

func (n *nightmare) some(which []int) []Master {
	list := make([]Master, len(which))
	for i, m := range which {
		list[i] = n.list[m]
	}
	return list
}

// round runs up to three faults together. If one of them makes masters lose their data, round then waits until all
// masters vote, and otherwise for a moment.
func (n *nightmare) round() {
	var ends []func()
	forgets := n.rnd.IntN(4) == 0
	if forgets {
		ends = append(ends, n.begin(forgetful))
	} else if n.rnd.IntN(4) > 0 {
		ends = append(ends, n.begin(lasting))
	}
	if !forgets && n.rnd.IntN(2) == 0 {
		ends = append(ends, n.begin(crossing))
	}
	if n.rnd.IntN(6) == 0 {
		ends = append(ends, n.begin(personal))
	}
	n.wait(time.Duration(n.rnd.Int64N(int64(1500 * time.Millisecond))))
	for i := len(ends) - 1; i >= 0; i-- {
		if ends[i] != nil {
			ends[i]()
		}
	}
	n.note("the faults of this round have ended")
	if forgets {
		n.voting()
		return
	}
	n.wait(time.Duration(n.rnd.Int64N(int64(500 * time.Millisecond))))
}

func (n *nightmare) begin(kinds []bane) func() {
	b := kinds[n.rnd.IntN(len(kinds))]
	var some []int
	if b.most > 0 {
		some = n.rnd.Perm(len(n.list))[:1+n.rnd.IntN(b.most)]
	}
	n.note("%s %v", b.name, some)
	if n.counts == nil {
		n.counts = make(map[string]int)
	}
	n.counts[b.name]++
	return b.do(n, some)
}

func (n *nightmare) kinds() []string {
	var list []string
	for name, count := range n.counts {
		list = append(list, fmt.Sprint(name, " ", count))
	}
	slices.Sort(list)
	return list
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
)

const scenarioFaults = "faults"

// slowBy is how much later the replies of a slow master come.
const slowBy = 50 * time.Millisecond

// awayBy is the round trip to the masters of the second half of the faults. Where client and masters share the
// processors of one machine with nothing between, much of what a fault costs is what it does to them; masters that are
// worth locking over are on other machines.
const awayBy = 2 * time.Millisecond

// mendBound is how long a fault may take to be mended.
const mendBound = 30 * time.Second

// A fault is one thing that is wrong with some of the masters.
type fault struct {
	kind  string // hung, dead, slow, or healthy
	count int    // of masters that have it
	away  time.Duration
}

// The kinds of faults.
const (
	healthy = "healthy"
	hung    = "hung"
	dead    = "dead"
	slow    = "slow"
)

// oneDead is the fault of the default run.
var oneDead = fault{kind: dead, count: 1}

// allFaults lists what is measured of masters that are so far away; the first is what the others are compared with.
func allFaults(away time.Duration) []fault {
	return []fault{
		{healthy, 0, away},
		{hung, 1, away}, {dead, 1, away}, {slow, 1, away},
		{hung, 2, away}, {dead, 2, away}, {slow, 2, away},
	}
}

// everyFault is allFaults of masters as far as they are, and of those that are away.
func everyFault() []fault { return slices.Concat(allFaults(0), allFaults(awayBy)) }

func (f fault) String() string {
	words := [...]string{"all", "one", "two"}
	s := words[f.count] + " " + f.kind
	if f.away > 0 {
		s += fmt.Sprintf(", %v away", f.away)
	}
	return s
}

// What is measured under a fault.
var (
	mMax       = metric{"max", "us", less}
	mOfHealthy = metric{"p50/healthy", "", less}
	mFailed    = metric{"failed pairs", "1", less}
)

// planFaults has one caller of each contender live with each fault. Healthy masters are measured first in each round.
func (b *bench) planFaults() (plan [][]task) {
	if b.masters.servers == nil {
		b.report.note("faults are not measured: they need servers that the benchmark has started itself")
		return nil
	}
	faults := everyFault()
	if b.cfg.brief {
		faults = []fault{faults[0], oneDead}
	}
	base := map[string]float64{} // the p50 with healthy masters in this round
	for _, f := range faults {
		list := slices.Clone(b.cfg.entrants)
		if f.kind == hung { // a peer would wait for as long as the master hangs
			list = slices.DeleteFunc(list, func(e entrant) bool { return e.peer })
		}
		plan = append(plan, turns(f.String(), list, func(ctx context.Context, e entrant, round int) error {
			s, err := b.underFault(ctx, f, e, round)
			if err != nil {
				return err
			}
			p50 := micros(percentile(s.both, 50))
			if f.kind == healthy {
				base[e.name] = p50
			}
			b.took(e.name, s.pairs())
			b.addFault(f, e.name, s, p50/base[e.name])
			return nil
		}))
	}
	return plan
}

func (b *bench) addFault(f fault, who string, s *sample, ofHealthy float64) {
	add := func(m metric, v float64) { b.add(scenarioFaults, f.String(), who, m, v) }
	add(mP50, micros(percentile(s.both, 50)))
	add(mP99, micros(percentile(s.both, 99)))
	add(mMax, micros(percentile(s.both, 100)))
	add(mOfHealthy, ofHealthy)
	add(mFailed, float64(s.failed))
}

// underFault opens a contender and warms it up while all is well, injects the fault, runs one caller from its first
// moment on, and mends it. The contender is closed when all masters are back, so that it can release what it still
// owes.
func (b *bench) underFault(ctx context.Context, f fault, e entrant, round int) (s *sample, err error) {
	set := b.setting(e.name)
	proxies, urls, err := between(set.URLs, f)
	defer func() { err = errors.Join(err, closeProxies(proxies)) }()
	if err != nil {
		return nil, err
	}
	set.URLs = urls
	c, err := e.open(ctx, set)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, c)) }()
	// Asking a hung master for its load would take as long as it hangs.
	r := run{contender: c, goroutines: 1, duration: b.cfg.duration / 5, cold: true, label: "fault-", masters: &masters{}}
	if _, err := r.measure(ctx); err != nil {
		return nil, err
	}
	r.duration = b.cfg.duration
	defer func() {
		mendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mendBound)
		defer cancel()
		err = errors.Join(err, b.mend(mendCtx, f, round, proxies))
		if l, ok := c.(*library); ok && err == nil {
			err = l.admit(mendCtx)
		}
	}()
	if err := b.inject(f, round, proxies); err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// between puts a proxy before each master that is to be away or slow, and returns the URLs to use.
func between(urls []string, f fault) (proxies []*proxy, near []string, err error) {
	near = slices.Clone(urls)
	for i, u := range urls {
		if f.away == 0 && (f.kind != slow || i >= f.count) {
			break
		}
		p, at, err := proxied(u, f.away)
		if err != nil {
			return proxies, nil, err
		}
		proxies, near[i] = append(proxies, p), at
	}
	return proxies, near, nil
}

func closeProxies(list []*proxy) (err error) {
	for _, p := range list {
		err = errors.Join(err, p.close())
	}
	return err
}

// hit are the servers that have the fault in a round.
func (b *bench) hit(f fault, round int) (list []*redisproc.Server) {
	for i := range f.count {
		list = append(list, b.masters.servers[(round+i)%len(b.masters.servers)])
	}
	return list
}

// inject brings the fault about.
func (b *bench) inject(f fault, round int, proxies []*proxy) (err error) {
	if f.kind == slow {
		for _, p := range proxies[:f.count] {
			p.setDelay(slowBy)
		}
		return nil
	}
	for _, s := range b.hit(f, round) {
		if f.kind == hung {
			err = errors.Join(err, s.Pause())
		} else {
			err = errors.Join(err, s.Kill())
		}
	}
	return err
}

// mend ends it.
func (b *bench) mend(ctx context.Context, f fault, round int, proxies []*proxy) (err error) {
	for _, p := range proxies {
		p.setDelay(0)
	}
	if f.kind == slow {
		return nil
	}
	for _, s := range b.hit(f, round) {
		if f.kind == hung {
			err = errors.Join(err, s.Resume())
		} else {
			err = errors.Join(err, s.Restart(ctx))
		}
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/bench/internal/proxy"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/pool"
)

const scenarioFaults = "faults"

// awayBy is the simulated round-trip time to the masters in the second half of the faults. Without it, much of the
// cost of a fault is that client and masters compete for the processors of one machine. In production, the masters are
// on other machines.
const awayBy = 2 * time.Millisecond

// mendBound is the maximum time to end a fault and to admit the masters again.
const mendBound = 30 * time.Second

// A fault is one kind of failure of some of the masters.
type fault struct {
	kind  string        // hung, dead, slow, or healthy
	count int           // number of masters affected
	away  time.Duration // simulated round-trip time to the masters
}

// Kinds of faults.
const (
	healthy = "healthy"
	hung    = "hung"
	dead    = "dead"
	slow    = "slow" // a proxy delays the replies by proxy.Slow
)

// oneDead is the fault that the summary shows.
var oneDead = fault{kind: dead, count: 1}

// nearFaults lists the faults to measure with a simulated round-trip time of away. The first entry is healthy; the
// ratios are relative to it.
func nearFaults(away time.Duration) []fault {
	return []fault{
		{healthy, 0, away},
		{hung, 1, away}, {dead, 1, away}, {slow, 1, away},
		{hung, 2, away}, {dead, 2, away}, {slow, 2, away},
	}
}

// everyFault returns all faults, first without a simulated round-trip time, then with awayBy.
func everyFault() []fault { return slices.Concat(nearFaults(0), nearFaults(awayBy)) }

func (f fault) String() string {
	words := [...]string{"all", "one", "two"}
	s := words[f.count] + " " + f.kind
	if f.away > 0 {
		s += fmt.Sprintf(", %v away", f.away)
	}
	return s
}

// Metrics under a fault.
var (
	mMax       = metric{"max", "us", less}
	mOfHealthy = metric{"p50/healthy", "", less}
	mFailed    = metric{"failed pairs", "1", less}
)

// planFaults runs one caller of each contender with each fault. Each round measures healthy masters first.
func planFaults(b *bench) (plan [][]task) {
	if b.masters.servers == nil {
		b.report.note("faults are not measured, because the benchmark does not stop or kill the masters of -masters")
		return nil
	}
	faults := everyFault()
	if b.cfg.brief {
		faults = faults[:3]
	}
	base := map[string]float64{} // contender -> p50 with healthy masters in this round
	for _, f := range faults {
		list := slices.DeleteFunc(slices.Clone(b.cfg.entrants), func(e entrant) bool { return e.variant })
		if f.kind == hung { // a peer would wait until the master resumes
			list = slices.DeleteFunc(list, func(e entrant) bool { return e.peer })
		}
		plan = append(plan, turns(f.String(), list, func(ctx context.Context, e entrant, round int) error {
			s, err := underFault(ctx, b, f, e, round)
			if err != nil {
				return err
			}
			b.took(e.name, len(s.pairs))
			add := func(m metric, v float64) { b.add(scenarioFaults, f.String(), e.name, m, v) }
			both := s.both()
			p50 := micros(percentile(both, 50))
			if f.kind == healthy {
				base[e.name] = p50
			}
			add(mP50, p50)
			add(mP99, micros(percentile(both, 99)))
			add(mMax, micros(percentile(both, 100)))
			add(mOfHealthy, p50/base[e.name])
			add(mFailed, float64(s.failed))
			return nil
		}))
	}
	return plan
}

// underFault opens a contender, warms it up on healthy masters, starts the fault, measures one caller, and ends the
// fault. It closes the contender last, so that the contender can send its pending releases.
func underFault(ctx context.Context, b *bench, f fault, e entrant, round int) (s *sample, err error) {
	set := b.setting(e.name)
	proxies, urls, err := between(set.URLs, f)
	defer func() {
		for _, p := range proxies {
			err = errors.Join(err, p.Close())
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, u := range set.URLs {
		set.Names = append(set.Names, pool.URL(u).Name)
	}
	set.URLs = urls
	c, err := e.open(ctx, set)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shut(ctx, c)) }()
	// The run has no masters whose load it reads, because a hung master would not reply.
	r := run{contender: c, goroutines: 1, duration: b.cfg.duration / 5, cold: true, label: "fault-", masters: &masters{}}
	before, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	r.duration = b.cfg.duration
	defer func() {
		mendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mendBound)
		defer cancel()
		err = errors.Join(err, endFault(mendCtx, b, f, round, proxies))
		if l, ok := c.(*library); ok && err == nil {
			err = l.admit(mendCtx)
		}
	}()
	struck := time.Now()
	if err := strike(b, f, round, proxies); err != nil {
		return nil, err
	}
	if s, err = r.measure(ctx); err == nil && f.kind != healthy {
		b.report.setCurve(faultCurve(f.String(), e.name, struck, r.duration/50, before, s))
	}
	return s, err
}

// faultCurve returns the duration of a pair before and after the start of a fault: for each step, the median of the
// pairs that ended in that step.
func faultCurve(kase, who string, struck time.Time, step time.Duration, samples ...*sample) curve {
	var x, y []float64
	for _, s := range samples {
		ended := func(p pair) time.Duration { return s.start.Add(p.began + p.both()).Sub(struck) }
		for i := 0; i < len(s.pairs); {
			var took []time.Duration
			first := ended(s.pairs[i])
			for ; i < len(s.pairs) && ended(s.pairs[i]) <= first+step; i++ {
				took = append(took, s.pairs[i].both())
			}
			x, y = append(x, millis(ended(s.pairs[i-1]))), append(y, millis(median(took)))
		}
	}
	return newCurve(curveFault, kase, who, x, y)
}

// between starts a proxy for each distant or slow master. It returns the URLs through the proxies, and the original
// URLs of the other masters.
func between(urls []string, f fault) (proxies []*proxy.Proxy, near []string, err error) {
	near = slices.Clone(urls)
	for i, u := range urls {
		if f.away == 0 && (f.kind != slow || i >= f.count) {
			break
		}
		p, err := proxy.New(u, f.away)
		if err != nil {
			return proxies, nil, err
		}
		proxies, near[i] = append(proxies, p), p.URL()
	}
	return proxies, near, nil
}

// strike starts the fault. Hung and dead servers are different ones in each round. Slow masters are always the first
// f.count masters, which have proxies.
func strike(b *bench, f fault, round int, proxies []*proxy.Proxy) (err error) {
	for i := range f.count {
		switch s := hit(b, round+i); f.kind {
		case slow:
			proxies[i].SetDelay(proxy.Slow)
		case hung:
			err = errors.Join(err, s.Pause())
		case dead:
			err = errors.Join(err, s.Kill())
		}
	}
	return err
}

// endFault ends the fault that strike started.
func endFault(ctx context.Context, b *bench, f fault, round int, proxies []*proxy.Proxy) (err error) {
	for i := range f.count {
		switch s := hit(b, round+i); f.kind {
		case slow:
			proxies[i].SetDelay(0)
		case hung:
			err = errors.Join(err, s.Resume())
		case dead:
			err = errors.Join(err, s.Restart(ctx))
		}
	}
	return err
}

func hit(b *bench, i int) *redisproc.Server { return b.masters.servers[i%len(b.masters.servers)] }

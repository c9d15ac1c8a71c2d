package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/scripts"
)

// slowBy is how much later the replies of a slow master come.
const slowBy = 50 * time.Millisecond

// awayBy is the round trip to the masters of the second half of the faults. Where client and masters share the processors of
// one machine with nothing between, much of what a fault costs is what it does to them; masters that are worth locking over
// are on other machines.
const awayBy = 2 * oneWay

// settleBound is how long the masters may take to vote again after a fault.
const settleBound = 30 * time.Second

// A fault is one thing that is wrong with some of the masters.
type fault struct {
	kind  string // hung, dead, slow, absent, or healthy
	count int    // of masters that have it
	// floor says that the floor is measured instead of the library: what a fault costs there, no library can take away.
	floor bool
	away  time.Duration // round trip to each master; 0 where they are as far as they are
}

// The kinds of faults.
const (
	healthy = "healthy"
	hung    = "hung"
	dead    = "dead"
	slow    = "slow"
	// absent masters are not connected to. It is for the floor, which does not survive masters that hang or die: the
	// quorum is then the third of four or of three answers instead of the third of five, and nothing else is different.
	absent = "absent"
)

// allFaults lists what each round measures of masters that are so far away.
func allFaults(away time.Duration) []fault {
	list := []fault{
		{kind: healthy},
		{kind: hung, count: 1}, {kind: dead, count: 1}, {kind: slow, count: 1},
		{kind: hung, count: 2}, {kind: dead, count: 2}, {kind: slow, count: 2},
		{floor: true, kind: healthy},
		{floor: true, kind: absent, count: 1}, {floor: true, kind: slow, count: 1},
		{floor: true, kind: absent, count: 2}, {floor: true, kind: slow, count: 2},
	}
	for i := range list {
		list[i].away = away
	}
	return list
}

// everyFault is allFaults of masters as far as they are, and of those that are away.
func everyFault() []fault { return slices.Concat(allFaults(0), allFaults(awayBy)) }

// base is what f is compared with.
func (f fault) base() fault {
	return fault{kind: healthy, floor: f.floor, away: f.away}
}

// proxied is how many of the masters are reached through a proxy: those that are made slow.
func (f fault) proxied() int {
	if f.kind == slow {
		return f.count
	}
	return 0
}

// onFloor is what shows what f costs the floor.
func (f fault) onFloor() fault {
	f.floor = true
	if f.kind == hung || f.kind == dead {
		f.kind = absent
	}
	return f
}

func (f fault) String() string {
	words := [...]string{"all", "one", "two"}
	s := words[f.count] + " " + f.kind
	if f.away > 0 {
		s += fmt.Sprintf(", %v away", f.away)
	}
	if f.floor {
		s = "floor: " + s
	}
	return s
}

const scenarioFaults = "faults"

// What is measured under a fault.
var (
	mMax       = metric{"max", "us", less}
	mOfHealthy = metric{"p50/healthy", "", less}
	mFailed    = metric{"failed pairs", "1", less}
)

// A faultBench is the library over the servers, and over the servers with one and with two of them behind a proxy.
type faultBench struct {
	*bench
	prefix  string
	away    time.Duration
	far     *far        // nil where away is 0
	slowing *far        // the proxies: the first stands alone, the others together
	proxied [3]*library // by number of masters behind a proxy
	urls    [3][]string
}

// measureFaults runs the faults, and runs them again over masters that are away, unless a distance was asked for.
func (b *bench) measureFaults(ctx context.Context) error {
	if b.masters.kind != kindProcess {
		b.report.note("faults are not measured: they need server processes that the benchmark has started itself")
		return nil
	}
	err := b.faultsAt(ctx, 0)
	if err == nil && len(b.cfg.rtt) == 0 {
		err = b.faultsAt(ctx, awayBy)
	}
	return err
}

// faultsAt runs every fault in every round, in an order that rotates, and waits after each until all masters vote again.
func (b *bench) faultsAt(ctx context.Context, away time.Duration) (err error) {
	fb := &faultBench{bench: b, prefix: b.prefixOf(nameLibrary), away: away}
	defer func() { err = errors.Join(err, fb.closeAll(ctx)) }()
	if err := fb.open(ctx); err != nil {
		return err
	}
	fb.part()
	faults := allFaults(away)
	for round := range b.cfg.rounds {
		samples := map[fault]*sample{}
		for k := range faults {
			f := faults[(k+round)%len(faults)]
			b.progress.say("round %d of %d, %s", round+1, b.cfg.rounds, f)
			s, err := fb.measure(ctx, f, round)
			if err != nil {
				return err
			}
			samples[f] = s
		}
		for _, f := range faults {
			b.addFault(f, samples[f], samples[f.base()])
		}
	}
	// A program that closes its pool gives up what it owes to a master that is not back yet; the keys that are left behind
	// are counted once all are back.
	for _, lib := range fb.proxied {
		if err := fb.settle(ctx, lib); err != nil {
			return err
		}
	}
	return nil
}

// addFault books the samples of one round.
func (b *bench) addFault(f fault, s, base *sample) {
	who := nameLibrary
	if f.floor {
		who = nameQueued
	}
	if !f.floor {
		b.took(nameLibrary, s.pairs())
	}
	add := func(m metric, v float64) { b.add(scenarioFaults, f.String(), who, m, v) }
	p50 := func(s *sample) float64 { return micros(percentile(s.both, 50)) }
	add(mP50, p50(s))
	add(mP99, micros(percentile(s.both, 99)))
	add(mMax, micros(percentile(s.both, 100)))
	add(mOfHealthy, p50(s)/p50(base))
	if s.clientCPU >= 0 {
		add(mClientCPU, s.clientCPU) // the proxies' included
	}
	add(mFailed, float64(s.failed))
}

func (fb *faultBench) open(ctx context.Context) (err error) {
	base := fb.masters.urls
	if fb.away > 0 {
		if fb.far, err = goFar(ctx, distances(fb.masters.direct, fb.away)); err != nil {
			return err
		}
		base = fb.far.urls
	}
	if fb.slowing, err = goFar(ctx, distances([]string{base[0], base[0], base[1]}, 0)); err != nil {
		return err
	}
	for n := range fb.proxied {
		fb.urls[n] = slices.Clone(base)
		copy(fb.urls[n], fb.slowing.urls[firstOf(n):][:n])
		if fb.proxied[n], err = connectLibrary(ctx, setting{URLs: fb.urls[n], Prefix: fb.prefix}); err != nil {
			return err
		}
	}
	return nil
}

// firstOf is the first of the proxies that n masters have.
func firstOf(n int) int { return max(n-1, 0) }

// slow makes the masters slow that are behind n proxies, or mends them.
func (fb *faultBench) slow(ctx context.Context, n int, by time.Duration) error {
	var errs []error
	for i := range n {
		errs = append(errs, fb.slowing.setDelay(ctx, firstOf(n)+i, by))
	}
	return errors.Join(errs...)
}

// part gives the masters that are at hand, and what makes them slow, processors of their own, as far as the system lets it.
func (fb *faultBench) part() {
	if fb.away > 0 {
		return
	}
	apart, err := keepApart(append(fb.masters.pids(), fb.slowing.pid()))
	if apart && err == nil {
		return
	}
	why := ""
	if err != nil {
		why = " (" + firstLine(err) + ")"
	}
	fb.report.note("faults: client and masters share the processors%s, and what a fault costs is to a large part what it does to them", why)
}

func (fb *faultBench) closeAll(ctx context.Context) error {
	var errs []error
	if fb.away == 0 {
		_ = endApart(fb.masters.pids()) // where it is not allowed, they are not apart
	}
	for _, l := range fb.proxied {
		if l != nil {
			errs = append(errs, closeAll(ctx, l))
		}
	}
	for _, f := range []*far{fb.slowing, fb.far} {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}

// measure warms up while all is well, injects the fault, runs one caller from its first moment on, and mends it.
func (fb *faultBench) measure(ctx context.Context, f fault, round int) (s *sample, err error) {
	lib := fb.proxied[f.proxied()]
	if err := fb.settle(ctx, lib); err != nil {
		return nil, fmt.Errorf("bench: before %s: %w", f, err)
	}
	var c contender = lib
	if f.floor {
		if c, err = fb.openFloorWithout(ctx, f); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, closeAll(ctx, c)) }()
	}
	r := run{
		contender: c, goroutines: 1, duration: fb.cfg.duration / 5, cold: true, tolerant: true,
		label: "fault-" + strconv.Itoa(f.proxied()) + "-",
		// Asking a hung master for its processor time would take as long as it hangs.
		masters: &masters{kind: kindGiven},
	}
	if _, err := r.measure(ctx); err != nil {
		return nil, err
	}
	r.duration = fb.cfg.duration
	mend, err := fb.inject(ctx, f, round)
	defer func() {
		mendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleBound)
		defer cancel()
		err = errors.Join(err, mend(mendCtx))
	}()
	if err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// openFloorWithout connects the floor to all masters that are not absent, with the quorum of all. It does so for each
// measurement, since the floor does not outlive the death of a master.
func (fb *faultBench) openFloorWithout(ctx context.Context, f fault) (contender, error) {
	urls := fb.urls[f.proxied()]
	quorum := len(urls)/2 + 1
	if f.kind == absent {
		urls = urls[f.count:]
	}
	cfg := queuedFloor
	cfg.Quorum = quorum
	return floorOpener(cfg)(ctx, setting{URLs: urls, Prefix: fb.prefixOf("floor")}, func(err error) { fb.abort(ctx, err) })
}

// inject brings the fault about. Hung and dead masters differ from round to round. What it returns mends it, and is
// never nil.
func (fb *faultBench) inject(ctx context.Context, f fault, round int) (mend func(context.Context) error, err error) {
	switch f.kind {
	case healthy, absent:
		return func(context.Context) error { return nil }, nil
	case slow:
		return func(ctx context.Context) error { return fb.slow(ctx, f.count, 0) }, fb.slow(ctx, f.count, slowBy)
	}
	var hit []*redisproc.Server
	for i := range f.count {
		hit = append(hit, fb.masters.servers[(round+i)%len(fb.masters.servers)])
	}
	for _, s := range hit {
		if f.kind == hung {
			err = errors.Join(err, s.Pause())
		} else {
			err = errors.Join(err, s.Kill())
		}
	}
	return func(ctx context.Context) (err error) {
		for _, s := range hit {
			if f.kind == hung {
				err = errors.Join(err, s.Resume())
			} else {
				err = errors.Join(err, s.Restart(ctx))
			}
		}
		fb.part() // those that are new would run where the client does
		return err
	}, err
}

// settle returns when a lock of the library has its key on every master.
func (fb *faultBench) settle(ctx context.Context, lib *library) error {
	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for try := 0; ; try++ {
		if last = lib.admit(ctx); last == nil {
			last = fb.voted(ctx, lib, "settle-"+strconv.Itoa(try))
		}
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the masters do not all vote: %w", errors.Join(context.Cause(ctx), last))
		}
	}
}

// voted takes a lock and looks for its key on every master.
func (fb *faultBench) voted(ctx context.Context, lib *library, name string) (err error) {
	lock, err := lib.tryLock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	key := scripts.Prefix(fb.prefix).Lock(name)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 40 {
		missing := 0
		err = fb.masters.each(ctx, func(_ int, c redis.Conn) error {
			there, err := redis.Bool(c.Do("EXISTS", key))
			if !there {
				missing++
			}
			return err
		})
		if err != nil || missing == 0 {
			return err
		}
		err = fmt.Errorf("bench: %d of %d masters did not take the lock", missing, len(fb.masters.urls))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
	return err
}

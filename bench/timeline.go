package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
)

const scenarioTimeline = "timeline"

// A trouble is a fault that comes and goes while one caller locks and unlocks.
type trouble struct {
	name  string
	begin func(ctx context.Context, t *timeline) error
	end   func(ctx context.Context, t *timeline) error
}

// jitterBy is up to how much later the replies of two masters come over a jittery link.
const jitterBy = 20 * time.Millisecond

var troubles = []trouble{
	{"one slow", func(_ context.Context, t *timeline) error { t.slow(1, slowBy); return nil }, calm},
	{"two on a jittery link", func(_ context.Context, t *timeline) error { t.jitter(2, jitterBy); return nil }, calm},
	{"one hung", hangs(1), wakes(1)},
	{"two hung", hangs(2), wakes(2)},
	{"one dead, restarted", kills(1), restarts(1)},
	{"two dead, restarted", kills(2), restarts(2)},
}

// What is measured of a trouble.
var (
	mDuringOK  = metric{"pairs/s during", "1/s", more}
	mDuring50  = metric{"during p50", "us", less}
	mDuring99  = metric{"during p99", "us", less}
	mDuringMax = metric{"during max", "us", less}
	mDuringBad = metric{"failed during", "1", less}
	mBefore50  = metric{"before p50", "us", less}
	mAfter50   = metric{"after p50", "us", less}
	mAfterMax  = metric{"after max", "us", less}
	mAfterBad  = metric{"failed after", "1", less}
)

// A timeline is one contender over masters that each have a proxy before them.
type timeline struct {
	proxies []*proxy
	servers []*redisproc.Server
	pairs   []timedPair
	failed  []time.Duration // when, since the start
}

// A timedPair is a pair and when it ended, since the start.
type timedPair struct{ ended, took time.Duration }

func (t *timeline) slow(n int, by time.Duration) {
	for _, p := range t.proxies[:n] {
		p.setDelay(by)
	}
}

func (t *timeline) jitter(n int, by time.Duration) {
	for _, p := range t.proxies[:n] {
		p.setJitter(by)
	}
}

func calm(_ context.Context, t *timeline) error {
	t.slow(len(t.proxies), 0)
	t.jitter(len(t.proxies), 0)
	return nil
}

// onServers does something to the first n servers.
func onServers(n int, do func(context.Context, *redisproc.Server) error) func(context.Context, *timeline) error {
	return func(ctx context.Context, t *timeline) (err error) {
		for _, s := range t.servers[:n] {
			err = errors.Join(err, do(ctx, s))
		}
		return err
	}
}

func hangs(n int) func(context.Context, *timeline) error {
	return onServers(n, func(_ context.Context, s *redisproc.Server) error { return s.Pause() })
}

func wakes(n int) func(context.Context, *timeline) error {
	return onServers(n, func(_ context.Context, s *redisproc.Server) error { return s.Resume() })
}

func kills(n int) func(context.Context, *timeline) error {
	return onServers(n, func(_ context.Context, s *redisproc.Server) error { return s.Kill() })
}

func restarts(n int) func(context.Context, *timeline) error {
	return onServers(n, func(ctx context.Context, s *redisproc.Server) error { return s.Restart(ctx) })
}

// measureTimelines has each contender live through each trouble: as long before it as in it, and twice as long after.
func (b *bench) measureTimelines(ctx context.Context) error {
	if b.masters.kind != kindProcess {
		b.report.note("timelines are not measured: they need server processes that the benchmark has started itself")
		return nil
	}
	for round := range b.cfg.rounds {
		for _, tr := range troubles {
			for _, e := range b.entrants {
				if e.pairsOnly || e.oneServer {
					continue // the floors do not outlive a fault, one server has none to spare
				}
				b.progress.say("round %d of %d, %s, %s", round+1, b.cfg.rounds, tr.name, e.name)
				err := b.liveThrough(ctx, tr, e)
				if !b.peerFailed(ctx, e, tr.name, err) && err != nil {
					return fmt.Errorf("%s, %s: %w", tr.name, e.name, err)
				}
			}
		}
	}
	return nil
}

func (b *bench) liveThrough(ctx context.Context, tr trouble, e entrant) (err error) {
	t := &timeline{servers: b.masters.servers}
	var urls []string
	defer func() {
		for _, p := range t.proxies {
			err = errors.Join(err, p.close())
		}
	}()
	for _, u := range b.masters.urls {
		p, near, perr := proxied(u, 0)
		if perr != nil {
			return perr
		}
		t.proxies, urls = append(t.proxies, p), append(urls, near)
	}
	c, err := e.open(ctx, setting{URLs: urls, Prefix: b.prefixOf(e.name)}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, c)) }()
	part := b.cfg.duration
	if err := t.live(ctx, c.caller(), tr, part); err != nil {
		return err
	}
	b.took(e.name, len(t.pairs))
	b.addTimeline(tr.name, e.name, t, part)
	return nil
}

// live runs the caller for four parts; the trouble is in the second.
func (t *timeline) live(ctx context.Context, c caller, tr trouble, part time.Duration) (err error) {
	warm := newWorker(c, "timeline-")
	for range 50 {
		_ = warm.pair(ctx) // what fails here is seen below
	}
	runCtx, stop := context.WithTimeout(ctx, 4*part)
	defer stop()
	start := time.Now()
	done := make(chan error, 1)
	go func() {
		first, second := time.NewTimer(part), time.NewTimer(2*part)
		defer first.Stop()
		defer second.Stop()
		<-first.C
		err := tr.begin(ctx, t)
		<-second.C
		endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleBound)
		defer cancel()
		done <- errors.Join(err, tr.end(endCtx, t)) // also where the first half failed: nobody is left stopped
	}()
	w := newWorker(c, "timeline-")
	for runCtx.Err() == nil {
		n := len(w.locks)
		err := w.pair(runCtx)
		at := time.Since(start)
		switch {
		case err == nil:
			t.pairs = append(t.pairs, timedPair{at, w.locks[n] + w.unlocks[n]})
		case runCtx.Err() == nil:
			t.failed = append(t.failed, at)
		}
	}
	return <-done
}

// took are the sorted times of the pairs that ended from one moment to another.
func (t *timeline) took(from, to time.Duration) (list []time.Duration) {
	for _, p := range t.pairs {
		if p.ended >= from && p.ended < to {
			list = append(list, p.took)
		}
	}
	slices.Sort(list)
	return list
}

func (t *timeline) failures(from, to time.Duration) (n int) {
	for _, at := range t.failed {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// buckets is how many points a line of time has.
const buckets = 80

func (b *bench) addTimeline(kase, who string, t *timeline, part time.Duration) {
	add := func(m metric, v float64) { b.add(scenarioTimeline, kase, who, m, v) }
	during, after := t.took(part, 2*part), t.took(2*part, 4*part)
	add(mDuringOK, float64(len(during))/part.Seconds())
	if len(during) > 0 {
		add(mDuring50, micros(percentile(during, 50)))
		add(mDuring99, micros(percentile(during, 99)))
		add(mDuringMax, micros(percentile(during, 100)))
	}
	add(mDuringBad, float64(t.failures(part, 2*part)))
	add(mBefore50, micros(percentile(t.took(0, part), 50)))
	add(mAfter50, micros(percentile(after, 50)))
	add(mAfterMax, micros(percentile(after, 100)))
	add(mAfterBad, float64(t.failures(2*part, 4*part)))
	c := curve{Kind: curveTime, Case: kase, Who: who}
	width := 4 * part / buckets
	for i := range buckets {
		if list := t.took(time.Duration(i)*width, time.Duration(i+1)*width); len(list) > 0 {
			c.X, c.Y = append(c.X, millis(time.Duration(i)*width)), append(c.Y, micros(percentile(list, 100)))
		}
	}
	b.report.setCurve(c)
}

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// A fault is one kind of failure of some of the masters.
type fault struct {
	kind  string
	count int // number of masters affected
}

const (
	hung = "hung" // SIGSTOP
	dead = "dead" // SIGKILL
	slow = "slow" // a proxy delays the replies by slowBy

	slowBy = 50 * time.Millisecond
)

// faults lists the faults in the order of measuring. The ratios are relative to the first.
var faults = []fault{{"healthy", 0}, {hung, 1}, {dead, 1}, {slow, 1}, {hung, 2}, {dead, 2}, {slow, 2}}

func (f fault) String() string { return [...]string{"all ", "one ", "two "}[f.count] + f.kind }

var mOfHealthy = metric{"p50/healthy", ""}

// faultTask measures one caller of each contender with the fault.
func (b *bench) faultTask(f fault) task {
	list := slices.DeleteFunc(slices.Clone(b.entrants), func(e entrant) bool { return !e.majority })
	return task{scenarioFaults, f.String(), list, func(ctx context.Context, e entrant, round int) error {
		p, err := b.underFault(ctx, f, e, round)
		if err != nil {
			return err
		}
		at := place{scenarioFaults, f.String(), e.name}
		b.addTimes(at, p)
		base := b.report.find(place{scenarioFaults, faults[0].String(), e.name}, mP50).Rounds[round]
		b.report.add(at, mOfHealthy, quantile(p.both, 0.5)/base)
		return nil
	}}
}

// underFault opens a contender, warms it up on healthy masters, starts the fault, measures one caller, and ends the
// fault. It closes the contender last, so that the contender can send its pending releases. Each round affects other
// masters.
func (b *bench) underFault(ctx context.Context, f fault, e entrant, round int) (p *pairs, err error) {
	s := b.setting()
	s.URLs = slices.Clone(s.URLs)
	var hit []*redisproc.Server
	var proxies []*proxy
	for i := range f.count {
		at := (round + i) % len(b.masters.servers)
		hit = append(hit, b.masters.servers[at])
		if f.kind == slow {
			p, err := newProxy(hit[i].Addr())
			if err != nil {
				return nil, err
			}
			defer p.close()
			proxies, s.URLs[at] = append(proxies, p), "redis://"+p.listener.Addr().String()
		}
	}
	c, err := e.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shut(ctx, c)) }()
	if _, err := drive(ctx, c, e, 1, 0, b.duration/5, &masters{}); err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
		defer cancel()
		for _, p := range proxies {
			p.delay.Store(0)
		}
		for _, server := range hit {
			switch f.kind {
			case hung:
				err = errors.Join(err, server.Resume())
			case dead:
				err = errors.Join(err, server.Restart(ctx))
			}
		}
	}()
	for _, p := range proxies {
		p.delay.Store(int64(slowBy))
	}
	for _, server := range hit {
		switch f.kind {
		case hung:
			err = server.Pause()
		case dead:
			err = server.Kill()
		}
		if err != nil {
			return nil, err
		}
	}
	return drive(ctx, c, e, 1, 0, b.duration, &masters{}) // a hung master would not reply
}

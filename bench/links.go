package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

const scenarioLinks = "links"

// A link is how far the masters are away.
type link struct {
	name   string
	near   time.Duration // round trip
	far    time.Duration // round trip of the last masters
	howFar int           // how many are far
}

// oneWay is the delay of the link that the targets speak of, each way.
const oneWay = time.Millisecond

var (
	linkHalf = link{name: "0.5 ms round trip", near: 500 * time.Microsecond}
	linkNear = link{name: "2 ms round trip", near: 2 * oneWay}
	linkZone = link{name: "2 ms round trip, one at 10 ms", near: 2 * oneWay, far: 10 * time.Millisecond, howFar: 1}
	linkTwo  = link{name: "2 ms round trip, two at 10 ms", near: 2 * oneWay, far: 10 * time.Millisecond, howFar: 2}

	links = []link{linkHalf, linkNear, linkZone, linkTwo}
)

// tripGrace is what a lock may take besides a round trip.
const tripGrace = 200 * time.Microsecond

var (
	mTrip     = metric{"PING p50", "us", less}
	mOverTrip = metric{"lock p50/PING", "", less}
	mLessTrip = metric{"less 0.2 ms/PING", "", less}
)

// measureLinks is one caller over masters that are away, by each link.
func (b *bench) measureLinks(ctx context.Context) error {
	for round := range b.cfg.rounds {
		for _, l := range links {
			for k := range b.entrants {
				e := b.entrants[(k+round)%len(b.entrants)]
				if e.oneServer {
					continue
				}
				b.progress.say("round %d of %d, %s, %s", round+1, b.cfg.rounds, l.name, e.name)
				if err := b.overLink(ctx, l, e); err != nil {
					return fmt.Errorf("%s, %s: %w", l.name, e.name, err)
				}
			}
		}
	}
	return nil
}

func (b *bench) overLink(ctx context.Context, l link, e entrant) (err error) {
	var list []distance
	for i, u := range b.masters.direct {
		d := distance{u, l.near}
		if i >= len(b.masters.direct)-l.howFar {
			d.RoundTrip = l.far
		}
		list = append(list, d)
	}
	f, err := goFar(ctx, list)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	trip, err := roundTrip(ctx, f.urls[0], b.cfg.duration)
	if err != nil {
		return err
	}
	c, err := e.open(ctx, setting{URLs: f.urls, Prefix: b.prefixOf(e.name)}, func(err error) { b.abort(ctx, err) })
	if err != nil {
		return err
	}
	s, err := run{contender: c, goroutines: 1, duration: b.cfg.duration, masters: &masters{kind: kindGiven}, label: "link-", tolerant: e.peer, cold: true}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	b.took(e.name, s.pairs())
	add := func(m metric, v float64) { b.add(scenarioLinks, l.name, e.name, m, v) }
	p50 := percentile(s.locks, 50)
	add(mP50, micros(p50))
	add(mP99, micros(percentile(s.locks, 99)))
	add(mTrip, micros(trip))
	add(mOverTrip, micros(p50)/micros(trip))
	add(mLessTrip, micros(p50-tripGrace)/micros(trip))
	return nil
}

// roundTrip is the median time of a PING over a connection of its own, for a third of the time that a measurement has.
func roundTrip(ctx context.Context, url string, duration time.Duration) (_ time.Duration, err error) {
	c, err := redis.DialURLContext(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var list []time.Duration
	for began := time.Now(); time.Since(began) < duration/3 || len(list) == 0; {
		start := time.Now()
		if _, err := redis.DoContext(c, ctx, "PING"); err != nil {
			return 0, fmt.Errorf("bench: PING: %w", err)
		}
		list = append(list, time.Since(start))
	}
	return median(list), nil
}

func (r *report) linkTargets() []target {
	zone := ratio(r.figures.find(scenarioLinks, linkZone.name, nameLibrary, mP50.name), r.figures.find(scenarioLinks, linkNear.name, nameLibrary, mP50.name))
	list := []target{
		atMost("lock p50 over a link of 1 ms each way, us", 1.05*micros(2*oneWay)+micros(tripGrace), r.of(scenarioLinks, linkNear.name, mP50)),
		atMost("lock p50 over a link of 1 ms each way, less 0.2 ms / PING over it", 1.05, r.of(scenarioLinks, linkNear.name, mLessTrip)),
		atMost("lock p50 with one master at 10 ms / without", 1.05, zone),
	}
	list[0].Floor = r.figures.median(scenarioLinks, linkNear.name, nameDirect, mP50.name)
	list[1].Floor = r.figures.median(scenarioLinks, linkNear.name, nameDirect, mLessTrip.name)
	return list
}

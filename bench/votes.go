package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

const scenarioVotes = "votes"

// What is measured of the votes of a master.
var (
	mTrip50  = metric{"round trip p50", "us", less}
	mTrip99  = metric{"round trip p99", "us", less}
	mDecided = metric{"decided", "%", ""} // of the rounds: this master's vote made the majority
	mBehind  = metric{"behind p50", "us", ""}
)

func votesCase(op string, n int) string {
	return fmt.Sprintf("%s, by master, %s", op, goroutinesCase(n))
}

func masterRow(i int) string { return "master " + strconv.Itoa(i+1) }

// A voteLog is told of each vote. What is behind is how much later than the vote that decided the round a master's came
// as a rule; the votes of a round are not known to belong together here, so it is taken from the medians.
type voteLog struct {
	index map[string]int // by address

	mu    sync.Mutex
	on    bool              // guarded by mu: votes count
	trips [][]time.Duration // guarded by mu, by master
	wins  []int             // guarded by mu, by master: votes that decided
	all   []time.Duration   // guarded by mu: of the votes that decided
}

func (v *voteLog) vote(i redlock.VoteInfo) {
	if i.Op != opLock || i.Kind != "granted" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	m, known := v.index[i.Master]
	if !v.on || !known {
		return
	}
	v.trips[m] = append(v.trips[m], i.Elapsed)
	if i.Decides {
		v.wins[m]++
		v.all = append(v.all, i.Elapsed)
	}
}

// measureVotes tells how far away each master is from the library's point of view, and which of them decide its locks. It
// is a run of its own, since telling every vote costs something.
func (b *bench) measureVotes(ctx context.Context) error {
	for round := range b.cfg.rounds {
		for _, n := range b.cfg.goroutines {
			b.progress.say("round %d of %d, %s", round+1, b.cfg.rounds, votesCase(opLock, n))
			if err := b.votes(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) votes(ctx context.Context, n int) error {
	masters := len(b.masters.urls)
	v := &voteLog{index: map[string]int{}, trips: make([][]time.Duration, masters), wins: make([]int, masters)}
	e, err := entrantNamed(nameLibrary)
	if err != nil {
		return err
	}
	l, err := connectLibrary(ctx, b.setting(e), redlock.WithTrace(&redlock.Trace{Vote: v.vote}))
	if err != nil {
		return err
	}
	v.mu.Lock()
	for i := range masters {
		v.index[l.masters.Addr(i)] = i
	}
	v.on = true
	v.mu.Unlock()
	s, err := run{contender: l, goroutines: n, duration: b.cfg.duration, masters: b.masters, label: "votes-", tolerant: true, cold: true}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, l)); err != nil {
		return err
	}
	b.took(nameLibrary, s.pairs())
	v.mu.Lock()
	defer v.mu.Unlock()
	decided := micros(percentile(sorted(v.all), 50))
	for i, trips := range v.trips {
		add := func(m metric, value float64) { b.add(scenarioVotes, votesCase(opLock, n), masterRow(i), m, value) }
		slices.Sort(trips)
		if len(trips) > 0 {
			add(mTrip50, micros(percentile(trips, 50)))
			add(mTrip99, micros(percentile(trips, 99)))
			add(mBehind, micros(percentile(trips, 50))-decided)
		}
		add(mDecided, 100*float64(v.wins[i])/float64(max(len(v.all), 1)))
	}
	return nil
}

package redlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Who is what all masters that can be reached say of one name; see [Locker.Who].
type Who struct {
	Holder
	// N is the number of masters of the fleet.
	N int
	// Queue are those that wait, the first first: at most the first ten that each master names. A waiter that has gone
	// without a word is in it for up to 21 s.
	Queue []Waiter
}

// A Waiter is one that waits for a name, as the masters' queues say.
type Waiter struct {
	// Owner is its label; see [WithOwner].
	Owner string
	// For is for how long it has waited, by the masters' clocks.
	For time.Duration
	// On is the number of masters that have it in their queue.
	On int
}

// Who tells who holds name, and who waits for it. It is [Locker.Inspect] for people: it waits for every master that can
// be reached, whether it votes or not, so On tells all that have the lock.
func (l *Locker) Who(ctx context.Context, name string) (Who, error) {
	if err := scripts.CheckName(name); err != nil {
		return Who{}, invalid("%v", err)
	}
	if !l.enter() {
		return Who{}, ErrClosed
	}
	defer l.leave()
	view, r, hs, err := l.askAll(ctx, "inspect", name)
	if err != nil {
		return Who{}, err
	}
	w := Who{Holder: hs.holder(view.Config.Rule), N: view.Config.N(), Queue: hs.queue()}
	if w.ID != "" {
		w.Left -= l.now().Sub(r.Start) + l.cfg.drift.Of(w.Left)
	}
	return w, nil
}

// askAll inspects name on all masters, and waits for all that can be reached. It fails where fewer than a quorum
// answered.
func (l *Locker) askAll(ctx context.Context, op, name string) (*admission.View, *round.Round, holdings, error) {
	view, _ := l.voters.Await(ctx, (*admission.View).Settled) // an early end shows in the votes
	r, keys := l.sender.New(view, op, nil), scripts.Prefix(l.cfg.prefix).Keys(name)
	hs := make(holdings)
	cause := l.toAll(ctx, view, view.Encoder.Inspect(&keys), func(a answer) { r.Cast(a.master, hs.add(a, l.pool.Addr)) })
	if count := r.Tally(); !count.Rule.Won(count.Of(scripts.Granted)) {
		return nil, nil, nil, failed(op, name, r.Failure(ErrNoQuorum, cause))
	}
	return view, r, hs, nil
}

// toAll sends a call to all masters, and has f told of each answer, until ctx ends: then it returns why.
func (l *Locker) toAll(ctx context.Context, view *admission.View, call *scripts.Call, f func(answer)) (cause error) {
	came := make(answers, view.Config.N())
	for i := range view.Config.Rule.All().All() {
		if err := l.pool.Send(i, call, pool.Stamp{}, came); err != nil {
			came <- answer{i, nil, err}
		}
	}
	for range view.Config.N() {
		select {
		case a := <-came:
			f(a)
		case <-ctx.Done():
			return contextError(ctx)
		case <-l.closing:
			return ErrClosed
		}
	}
	return nil
}

// queue puts the queues of the masters together: in the order of the places that a waiter has on the average.
func (hs holdings) queue() (list []Waiter) {
	type waiter struct {
		Waiter
		places int
	}
	seen := make(map[string]*waiter)
	for _, h := range hs {
		for place, id := range h.First {
			w := seen[id]
			if w == nil {
				w = &waiter{}
				_, w.Owner = scripts.GrantLabel(id)
				seen[id] = w
			}
			w.On++
			w.places += place
			digits, _, _ := strings.Cut(id, ":")
			if began, err := strconv.ParseInt(digits, 10, 64); err == nil {
				w.For = max(w.For, time.Duration(h.Time-began)*time.Microsecond)
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		x, y := seen[a], seen[b]
		return cmp.Or(cmp.Compare(x.places*y.On, y.places*x.On), cmp.Compare(a, b))
	}) {
		list = append(list, seen[id].Waiter)
	}
	return list
}

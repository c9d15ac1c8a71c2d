package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A move is a change of the masters in a run. The first client also acts for the operator: it raises the epoch, and
// finishes the change as soon as the masters show that it is complete.
type move struct {
	old, next []int           // numbers of the masters; the sets may overlap
	both      []time.Duration // by client: when the client is notified of the joint configuration
	alone     []time.Duration // ... and of the final one, by its own timer, which is independent of the others
	never     int             // the client that is not notified; -1 for none
	raise     time.Duration   // when to raise the epoch
	abort     time.Duration   // when to cancel the change; 0: never
	fresh     bool            // the next masters initially have no record
}

// setOf returns the masters in the initial record of master i, or nil if master i has no record.
func (w *simulation) setOf(i int) (set []int) {
	m := w.plan.move
	switch {
	case w.plan.bare, w.plan.rolling && !slices.Contains(w.plan.lists[0], i):
	case w.plan.rolling:
		set = w.plan.lists[0]
	case m == nil:
		for j := range w.plan.masters {
			set = append(set, j)
		}
	case slices.Contains(m.old, i):
		set = m.old
	case slices.Contains(m.next, i) && !m.fresh:
		set = m.next
	}
	return set
}

// change chooses a change of the masters, without faults or with faults of masters, links or clients.
func (p *plan) change(r *rand.Rand) {
	p.masters = 5
	sets := [][2][]int{
		{{0, 1, 2}, {2, 3, 4}}, {{0, 1, 2}, {0, 1, 2, 3, 4}}, {{0, 1, 2, 3, 4}, {2, 3, 4}}, {{0, 1}, {2, 3, 4}},
		{{0, 1, 2}, {3, 4}}, {{0, 1, 2}, {1, 2, 3}}, {{0}, {1, 2, 3}},
	}
	both := sets[r.IntN(len(sets))]
	m := &move{old: both[0], next: both[1], never: -1, fresh: r.IntN(3) == 0}
	p.slowly(r, between(r, 2*time.Second, 20*time.Second))
	p.length = between(r, 90*time.Second, 150*time.Second)
	m.raise = between(r, 2*time.Second, 25*time.Second)
	for range p.clients {
		notified := between(r, time.Second, 20*time.Second)
		m.both = append(m.both, notified)
		m.alone = append(m.alone, notified+between(r, 2*time.Second, p.length))
	}
	if r.IntN(2) == 0 {
		m.never = 1 + r.IntN(p.clients-1)
	}
	p.move = m
	p.extend, p.toEnd = max(p.extend, 0.4), max(p.toEnd, 0.1)
	switch r.IntN(4) {
	case 0: // no faults
	case 1:
		p.few(r, crashEmpty, crashFull, flush)
		p.every *= 2
	case 2:
		p.few(r, split, splitUp, splitDown, stall, cutOff, loseReply)
	case 3:
		p.few(r, suspend, hang, cutOff, restart)
	}
}

// drawAbort chooses whether and when a change of the masters is cancelled.
func (p *plan) drawAbort(r *rand.Rand) {
	if p.move != nil && r.IntN(3) == 0 {
		p.move.abort = p.move.raise + between(r, 0, 100*time.Second)
	}
}

// stateOf returns the configuration of an epoch.
func (w *simulation) stateOf(epoch int64) redlock.Configuration {
	urls := func(which []int) (list []string) {
		for _, i := range which {
			list = append(list, "redis://"+w.servers[i].addr)
		}
		return list
	}
	m := w.plan.move
	switch epoch {
	case 0:
		return redlock.Configuration{Masters: urls(m.old)}
	case 1:
		return redlock.Configuration{Epoch: 1, Masters: urls(m.old), Next: urls(m.next)}
	}
	return redlock.Configuration{Epoch: 2, Masters: urls(m.next)}
}

// voters returns the masters that vote at the end of the run.
func (w *simulation) voters() []*server {
	if w.plan.move == nil {
		return w.servers
	}
	var list []*server
	set := w.plan.move.next
	if w.aborted {
		set = w.plan.move.old
	}
	for _, i := range set {
		list = append(list, w.servers[i])
	}
	return list
}

// mayForgetIn reports whether the set of masters tolerates a loss of the data of s.
func (w *simulation) mayForgetIn(s *server, set []int) bool {
	recent := 0
	for _, i := range set {
		if o := w.servers[i]; o != s && w.since(o.forgot) < w.quarantine()+3*time.Second {
			recent++
		}
	}
	return !slices.Contains(set, s.index) || recent < (len(set)-1)/2
}

// A configurer notifies one client of the configurations. The configurer of the first client also performs the
// operator's actions.
type configurer struct {
	*worker
	raised, finished, aborted bool
}

func newTeller(c *client, ctx context.Context) *configurer {
	return &configurer{worker: &worker{c: c, slot: slotConfigurer + c.index, ctx: ctx,
		random: rand.New(rand.NewPCG(c.w.Seed, 3000+uint64(c.index)))}}
}

func (k *configurer) run() {
	w := k.c.w
	m := w.plan.move
	for k.sleep(100*time.Millisecond+k.upTo(2*time.Second), nil) {
		k.waitAwake()
		if k.c.index == m.never {
			return
		}
		l, want := k.c.now(), int64(0)
		switch now := time.Since(w.start); {
		case now >= m.alone[k.c.index]:
			want = 2
		case now >= m.both[k.c.index]:
			want = 1
		}
		if is := admin.Of(l).Configuration()[0].Epoch; is < want {
			next := is + 1
			if k.random.IntN(8) == 0 { // the client skips a configuration
				next = want
			}
			k.give(l, next)
		}
		if k.c.index == 0 && admin.Of(l).Configuration()[0].Epoch == 1 && time.Since(w.start) >= m.raise {
			k.operate(l)
		}
	}
}

// give calls Reconfigure of l with the configuration of an epoch.
func (k *configurer) give(l *redlock.Locker, epoch int64) {
	w := k.c.w
	w.mu.Lock()
	w.note(k.c.index, -1, "is notified of epoch", "", epoch)
	w.loose = true // the client drops pending releases for masters that are no longer used
	w.mu.Unlock()
	ctx, cancel := k.within(k.ctx, 20*time.Millisecond+k.upTo(5*time.Second))
	defer cancel()
	err := k.call("Reconfigure", ctx, func() error { return admin.Of(l).Reconfigure(ctx, w.stateOf(epoch)) })
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.note(k.c.index, -1, "uses epoch", "", epoch)
		if s := w.anyWrong(w.plan.wrong); s != nil && epoch == 1 {
			w.jumpAfter(s, 2*time.Second)
		}
		if k.random.IntN(4) > 0 { // otherwise the next Locker starts with the previous configuration
			k.c.file = w.stateOf(epoch)
		}
	}
}

// operate raises the epoch, and finishes the change once that is possible, or cancels the change.
func (k *configurer) operate(l *redlock.Locker) {
	w := k.c.w
	ctx, cancel := k.within(k.ctx, 100*time.Millisecond)
	defer cancel()
	step := func(what string, f func(context.Context) error, done *bool) {
		if err := k.call(what, ctx, func() error { return f(ctx) }); err == nil {
			*done = true
			w.mu.Lock()
			w.note(k.c.index, -1, what+" is done", "", 0)
			w.mu.Unlock()
		}
	}
	if at := w.plan.move.abort; at > 0 && time.Since(w.start) >= at {
		w.mu.Lock()
		w.aborting = true
		w.mu.Unlock()
		step("AbortChange", clients.SetOf(l).AbortChange, &k.aborted)
	} else if !k.raised {
		step("RaiseEpoch", clients.SetOf(l).RaiseEpoch, &k.raised)
	} else if !k.finished {
		step("FinishChange", clients.SetOf(l).FinishChange, &k.finished)
	}
}

// complete completes the change of the masters for the first client, after the faults. Completion must be possible at
// any stage of the change. A separate Locker performs the operator's actions, as a command does.
func (w *simulation) complete() {
	if w.plan.move == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	w.sleep(2*w.quarantine() + w.plan.guard)
	c := w.clients[0]
	if w.aborting {
		if err := w.giveUp(ctx, c); err != nil {
			w.problem("without faults, the change of the masters could not be cancelled: %v", err)
		}
		if w.aborted {
			return
		}
	}
	err := w.finish(ctx, c)
	for l := c.now(); err == nil && admin.Of(l).Configuration()[0].Epoch < 2; {
		err = admin.Of(l).Reconfigure(ctx, w.stateOf(admin.Of(l).Configuration()[0].Epoch+1))
		if errors.Is(err, admission.ErrIncomplete) && ctx.Err() == nil { // the Locker has not read the written records yet
			w.sleep(500 * time.Millisecond)
			err = nil
		}
	}
	if err != nil {
		w.problem("without faults, the change of the masters could not be completed: %v", err)
	}
}

// giveUp cancels the change and sets w.aborted, unless clients may already use the final configuration.
func (w *simulation) giveUp(ctx context.Context, c *client) error {
	l, err := c.begin("operator", w.stateOf(1))
	if err != nil {
		return err
	}
	w.mu.Lock()
	c.old = append(c.old, l) // closed at the end of the run
	w.mu.Unlock()
	epoch := func(l *redlock.Locker) int64 { return admin.Of(l).Configuration()[0].Epoch }
	for err = clients.SetOf(l).AbortChange(ctx); err != nil && epoch(l) < 2; err = clients.SetOf(l).AbortChange(ctx) {
		if errors.Is(err, redlock.ErrInvalid) {
			return nil // clients may already use the final configuration
		}
		if ctx.Err() != nil {
			return err
		}
		w.sleep(2 * time.Second)
	}
	tools, old := clients.SetOf(l), len(w.plan.move.old)
	for on := 0; on < old && ctx.Err() == nil; { // as documented, repeat RaiseEpoch for masters that were down
		if err := tools.RaiseEpoch(ctx); err == nil {
			state, _ := tools.Change(ctx)
			on = min(state.Raised, state.Open)
		}
		w.sleep(time.Second)
	}
	for _, c := range w.clients {
		for epoch(c.now()) < 2 && ctx.Err() == nil {
			w.sleep(500 * time.Millisecond)
		}
	}
	w.mu.Lock()
	w.aborted = true
	w.mu.Unlock()
	return ctx.Err()
}

// finish raises the epoch, and finishes the change as soon as that is allowed.
func (w *simulation) finish(ctx context.Context, c *client) error {
	l, err := c.begin("operator", w.stateOf(1))
	if err != nil {
		return err
	}
	w.mu.Lock()
	c.old = append(c.old, l) // closed at the end of the run
	w.mu.Unlock()
	if err := clients.SetOf(l).RaiseEpoch(ctx); err != nil {
		return err
	}
	set := clients.SetOf(l)
	for err = set.FinishChange(ctx); err != nil && ctx.Err() == nil; err = set.FinishChange(ctx) {
		w.sleep(2 * time.Second)
	}
	return err
}

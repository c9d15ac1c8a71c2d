package redlock

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Holder is who holds a name, as a quorum of the masters says.
type Holder struct {
	// ID is the id of the grant; "" where none has a quorum.
	ID string
	// Owner is the label of its holder; see [WithOwner].
	Owner string
	// Token is its fencing token, and Since when it was won, by the masters' clocks.
	Token int64
	Since time.Time
	// Depth is how deep it is locked.
	Depth int
	// Left is for how long at least a quorum keeps it if it is not extended: the quorum-th largest TTL, less the time of
	// the question and the drift.
	Left time.Duration
	// On is the number of masters that have it, of those that answered.
	On, Answered int
	// Waiters is the largest number of waiters that a master has in its queue.
	Waiters int
}

// Inspect tells who holds name. It is a snapshot for people and monitoring: the answer may be out of date when it
// arrives, and must not be used to decide whether something is safe to do. It waits for a quorum of answers that
// agree, or for all; where fewer than a quorum answered, it fails with ErrNoQuorum, or the error of ctx. It writes
// nothing.
func (l *Locker) Inspect(ctx context.Context, name string) (Holder, error) {
	if err := scripts.CheckName(name); err != nil {
		return Holder{}, invalid("%v", err)
	}
	if !l.enter() {
		return Holder{}, ErrClosed
	}
	defer l.leave()
	view, err := l.ready(ctx)
	if err != nil {
		return Holder{}, failed("inspect", name, l.sender.NoQuorum(view, "inspect", err))
	}
	in := &inspection{
		l: l, rule: view.Config.Rule, agreed: make(chan struct{}), answers: make([]*scripts.Holding, len(view.Masters)),
	}
	in.round = l.sender.New(view, "inspect", nil)
	keys := scripts.Prefix(l.cfg.prefix).Keys(name)
	call := view.Encoder.Inspect(&keys)
	for i := range in.rule.All().All() {
		if err := l.pool.Send(i, call, pool.Stamp{}, in); err != nil {
			in.round.Cast(i, round.Vote{Err: err})
		}
	}
	return in.result(ctx, name)
}

// An inspection is one question under way. Every answer is a vote.
type inspection struct {
	l     *Locker
	rule  quorum.Rule
	round *round.Round

	mu      sync.Mutex
	answers []*scripts.Holding
	over    bool
	agreed  chan struct{} // closed when a quorum of answers agrees
}

// Reply implements pool.Receiver.
func (in *inspection) Reply(i int, value any, err error) {
	var h scripts.Holding
	if err == nil {
		if h, err = scripts.DecodeHolding(value); err != nil {
			err = &pool.Error{Addr: in.l.pool.Addr(i), Op: "inspect", Err: err}
		}
	}
	if err != nil {
		in.round.Cast(i, round.Vote{Err: err})
		return
	}
	in.mu.Lock()
	in.answers[i] = &h
	if _, on := in.commonLocked(); in.rule.Won(on) && !in.over {
		in.over = true
		close(in.agreed)
	}
	in.mu.Unlock()
	in.round.Cast(i, round.Vote{Vote: scripts.Vote{Kind: scripts.Granted}})
}

// commonLocked returns the answer that most masters give, and which do. While the masters are changed, one that has a
// majority of one set goes before all others: a program that has not heard of the change holds so.
func (in *inspection) commonLocked() (id string, on quorum.Set) {
	given := make(map[string]quorum.Set, 2)
	for i, h := range in.answers {
		if h != nil {
			given[h.ID] |= quorum.One(i)
		}
	}
	for one, set := range given {
		if one != "" && in.rule.WonHalf(set) {
			return one, set
		}
		if set.Len() > on.Len() {
			id, on = one, set
		}
	}
	return id, on
}

// result waits for the answers and puts them together.
func (in *inspection) result(ctx context.Context, name string) (Holder, error) {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make(chan bool, 1)
	go func() { all <- in.round.Complete(bounded) }()
	var cause error
	select {
	case <-in.agreed:
	case complete := <-all:
		if !complete {
			cause = contextError(ctx)
		}
	case <-in.l.closing:
		return Holder{}, ErrClosed
	}
	count := in.round.Tally()
	answered := count.Of(scripts.Granted)
	if !in.rule.Won(answered) {
		return Holder{}, failed("inspect", name, in.round.Failure(ErrNoQuorum, cause))
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	id, on := in.commonLocked()
	h := Holder{Answered: answered.Len()}
	for _, a := range in.answers {
		if a != nil {
			h.Waiters = max(h.Waiters, a.Waiters)
		}
	}
	if id == "" || !in.rule.WonHalf(on) {
		return h, nil
	}
	h.ID, h.On = id, on.Len()
	_, h.Owner = scripts.GrantLabel(id)
	for i := range on.All() {
		h.Depth, h.Token = max(h.Depth, in.answers[i].Depth), in.answers[i].Token
	}
	h.Since = time.UnixMicro(h.Token)
	left := in.leftLocked(on)
	h.Left = left - in.l.now().Sub(in.round.Start) - in.l.cfg.drift.Of(left)
	return h, nil
}

// leftLocked is for how long a majority of each set keeps the grant that has one there.
func (in *inspection) leftLocked(on quorum.Set) time.Duration {
	left := time.Duration(math.MaxInt64)
	for _, set := range in.rule.Sets() {
		if !on.MajorityOf(set) {
			continue
		}
		var lefts []time.Duration
		for i := range (on & set).All() {
			lefts = append(lefts, in.answers[i].Left)
		}
		slices.Sort(lefts)
		left = min(left, lefts[len(lefts)-quorum.Quorum(set.Len())])
	}
	return left
}

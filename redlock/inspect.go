package redlock

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Holder is who holds a name, as a quorum of the masters says.
type Holder struct {
	ID    string    // of the grant; "" where none has a quorum
	Owner string    // the label of its holder; see [WithOwner]
	Token int64     // its fencing token
	Since time.Time // when it was won, by the masters' clocks
	Depth int       // how deep it is locked
	// Left is for how long at least a quorum keeps it if it is not extended: the quorum-th largest TTL, less the time of
	// the question and the drift.
	Left         time.Duration
	On, Answered int // the masters that have it, of those that answered
	Waiters      int // the most that a master has in its queue
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
	view, err := l.voters.Ready(ctx)
	if err != nil {
		return Holder{}, failed("inspect", name, l.sender.NoQuorum(view, "inspect", err))
	}
	r, keys := l.sender.New(view, "inspect", nil), scripts.Prefix(l.cfg.prefix).Keys(name)
	call, came, holdings := view.Encoder.Inspect(&keys), make(answers, view.Config.N()), make(holdings)
	for i := range view.Config.Rule.All().All() {
		if err := l.pool.Send(i, call, pool.Stamp{}, came); err != nil {
			came <- answer{i, nil, err}
		}
	}
	var cause error
	for range view.Config.N() {
		select {
		case a := <-came:
			r.Cast(a.master, holdings.add(a, l.pool.Addr))
		case <-ctx.Done():
			cause = contextError(ctx)
		case <-l.closing:
			return Holder{}, ErrClosed
		}
		if _, on := holdings.common(view.Config.Rule); cause != nil || view.Config.Rule.Won(on) {
			break
		}
	}
	if count := r.Tally(); !count.Rule.Won(count.Of(scripts.Granted)) {
		return Holder{}, failed("inspect", name, r.Failure(ErrNoQuorum, cause))
	}
	h := holdings.holder(view.Config.Rule)
	if h.ID != "" {
		h.Left -= l.cfg.clock.Now().Sub(r.Start) + l.cfg.drift.Of(h.Left)
	}
	return h, nil
}

// answers gets the replies to one question. There is room for all of them.
type answers chan answer

type answer struct {
	master int
	value  any
	err    error
}

// Reply implements pool.Receiver.
func (to answers) Reply(i int, value any, err error) { to <- answer{i, value, err} }

// holdings are what the masters have answered, by their numbers.
type holdings map[int]*scripts.Holding

// add takes note of an answer. Every answer is a vote.
func (hs holdings) add(a answer, addr func(int) string) round.Vote {
	if a.err != nil {
		return round.Vote{Err: a.err}
	}
	h, err := scripts.DecodeHolding(a.value)
	if err != nil {
		return round.Vote{Err: &pool.Error{Addr: addr(a.master), Op: "inspect", Err: err}}
	}
	hs[a.master] = &h
	return round.Vote{Vote: scripts.Vote{Kind: scripts.Granted}}
}

// common returns the answer that most masters give, and which do. While the masters are changed, one that has a
// majority of one set goes before all others: a program that has not heard of the change holds so.
func (hs holdings) common(rule quorum.Rule) (id string, on quorum.Set) {
	given := make(map[string]quorum.Set, 2)
	for i, h := range hs {
		given[h.ID] |= quorum.One(i)
	}
	for one, set := range given {
		if one != "" && rule.WonHalf(set) {
			return one, set
		}
		if set.Len() > on.Len() {
			id, on = one, set
		}
	}
	return id, on
}

// holder puts the answers together. Left is from when they were given.
func (hs holdings) holder(rule quorum.Rule) Holder {
	h := Holder{Answered: len(hs)}
	for _, a := range hs {
		h.Waiters = max(h.Waiters, a.Waiters)
	}
	id, on := hs.common(rule)
	if id == "" || !rule.WonHalf(on) {
		return h
	}
	h.ID, h.On, h.Left = id, on.Len(), math.MaxInt64
	_, h.Owner = scripts.GrantLabel(id)
	for i := range on.All() {
		h.Depth, h.Token = max(h.Depth, hs[i].Depth), hs[i].Token
	}
	h.Since = time.UnixMicro(h.Token)
	for _, set := range rule.Sets() { // a majority of each set that has it keeps it so long
		if !on.MajorityOf(set) {
			continue
		}
		var lefts []time.Duration
		for i := range (on & set).All() {
			lefts = append(lefts, hs[i].Left)
		}
		slices.Sort(lefts)
		h.Left = min(h.Left, lefts[len(lefts)-quorum.Quorum(set.Len())])
	}
	return h
}

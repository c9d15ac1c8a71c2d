package redlock

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
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
	// Kept: it was unlocked, and a minimum hold keeps the name from others; see [WithMinHold]. Depth is 0 then.
	Kept bool
	// Left is for how long at least a quorum keeps it if it is not extended: the quorum-th largest TTL, less the time of
	// the question and the drift.
	Left         time.Duration
	On, Answered int // the masters that have it, of those that answered
	Waiters      int // the most that a master has in its queue
	// Readers are those of a [Shared] that a quorum says hold it, the oldest first: of the first hundred that each
	// master names. ReaderCount is how many there are. ID is that of the writer, if one holds it; it has no Token here.
	Readers     []Reader
	ReaderCount int
}

// A Reader is one of those that hold a [Shared] for reading, as the masters say.
type Reader struct {
	ID    string    // of its grant
	Owner string    // its label; see [WithOwner]
	Since time.Time // when it asked, by the masters' clocks
	On    int       // the masters that have it
}

// Inspect tells who holds name. It is a snapshot for people and monitoring: the answer may be out of date when it
// arrives, and must not be used to decide whether something is safe to do. It waits for a quorum of answers that
// agree, or for all; where fewer than a quorum answered, it fails with ErrNoQuorum, or the error of ctx. It writes
// nothing.
func (l *Locker) Inspect(ctx context.Context, name string) (Holder, error) {
	if err := l.checkName(name); err != nil {
		return Holder{}, err
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
	if len(h.Some) > 0 {
		if role, _ := scripts.ShareOf(h.Some[0].ID); role == scripts.Writer { // which is alone
			h.ID, h.Depth, h.Left = h.Some[0].ID, 1, h.Some[0].Left
		}
	}
	hs[a.master] = &h
	return round.Vote{Vote: scripts.Vote{Kind: scripts.Granted}}
}

// common returns the answer that most masters give, and which do. While the masters are changed, one that has a
// majority of one set goes before all others: a program that does not know of the change holds by the old set alone.
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
	h.Readers, h.ReaderCount = hs.readers(rule)
	id, on := hs.common(rule)
	if id == "" || !rule.WonHalf(on) {
		return h
	}
	h.ID, h.On, h.Left = id, on.Len(), math.MaxInt64
	_, h.Owner = scripts.GrantLabel(id)
	for i := range on.All() {
		h.Depth, h.Token = max(h.Depth, hs[i].Depth), hs[i].Token
		h.Kept = h.Kept || hs[i].Depth == 0 // its program has unlocked it: the other masters hear of it later, or never
	}
	if h.Kept {
		h.Depth = 0
	}
	if h.Since = time.UnixMicro(h.Token); h.Token == 0 {
		_, at := scripts.ShareOf(id)
		h.Since = time.UnixMicro(at)
	}
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

// readers are those that a quorum has, and how many a quorum counts.
func (hs holdings) readers(rule quorum.Rule) (list []Reader, count int) {
	on := make(map[string]quorum.Set)
	var counts []int
	for i, a := range hs {
		if a.ID != "" {
			continue
		}
		counts = append(counts, a.Shares)
		for _, s := range a.Some {
			on[s.ID] |= quorum.One(i)
		}
	}
	for id, set := range on {
		if rule.WonHalf(set) {
			_, label := scripts.GrantLabel(id)
			_, at := scripts.ShareOf(id)
			list = append(list, Reader{ID: id, Owner: label, Since: time.UnixMicro(at), On: set.Len()})
		}
	}
	slices.SortFunc(list, func(a, b Reader) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	if need := rule.Least(); len(counts) >= need {
		slices.Sort(counts)
		count = counts[len(counts)-need]
	}
	return list, max(count, len(list))
}

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
	if err := l.checkName(name); err != nil {
		return Who{}, err
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
		w.Left -= l.cfg.clock.Now().Sub(r.Start) + l.cfg.drift.Of(w.Left)
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

// ForceRelease takes the grant with this id from whoever holds it; [Locker.Who] and [Locker.Inspect] tell the id. It is
// for people who know that the holder is dead or hangs, and do not want to wait for the end of its TTL.
//
// It endangers what the lock protects: the holder, if it lives, finds out at its next extension, a third of its TTL
// later, and until then two programs may believe that they hold the name. Only a resource that refuses a smaller token
// than it has seen is safe: the next holder has a larger one.
//
// On every master that can be reached this grant is deleted, and no other, and the fence is raised to a new ballot, so
// that a late message of the holder is refused. Then the first waiter is told, as by any release.
//
// It returns how many masters had the grant and have deleted it. The error is nil where a quorum of the masters has
// said that it no longer has it; otherwise it is ErrNoQuorum, with the reason of each master that did not answer. A
// holder that extends the lock in the same moment may give it back to those that have deleted it: ask [Locker.Who]
// afterwards, and where it is still there call this again, which is harmless.
func (l *Locker) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	if err := l.checkName(name); err != nil {
		return 0, err
	}
	if owner, _ := scripts.GrantLabel(id); owner == "" {
		return 0, invalid("%.80q is no id of a grant", id)
	}
	if !l.enter() {
		return 0, ErrClosed
	}
	defer l.leave()
	view, _, hs, err := l.askAll(ctx, "force release", name)
	if err != nil {
		return 0, err
	}
	fences := make([]int64, 0, len(hs))
	for _, h := range hs {
		fences = append(fences, h.Fence)
	}
	floor := ballot.Floor(fences, view.Config.N(), view.Config.N()-len(hs))
	above, _, err := l.ballots.Propose(l.cfg.clock.Now(), name, floor, 0)
	if err != nil {
		return 0, failed("force release", name, err)
	}
	role, _ := scripts.ShareOf(id)
	keys := scripts.Prefix(l.cfg.prefix).KeysOf(name, role)
	call := view.Encoder.Release(&keys, scripts.Ending{Grants: []string{id}, Ballot: above})
	r := l.sender.New(view, "force release", nil)
	var without quorum.Set
	cause := l.toAll(ctx, view, call, func(a answer) {
		r.Reply(a.master, a.value, a.err)
		if had, err := scripts.DecodeReleased(a.value); a.err == nil && err == nil {
			without |= quorum.One(a.master)
			if had {
				released++
			}
		}
	})
	if view.Config.Rule.Won(without) {
		return released, nil
	}
	return released, failed("force release", name, r.Failure(ErrNoQuorum, cause))
}

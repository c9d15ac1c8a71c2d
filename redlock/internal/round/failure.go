package round

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// What a round decided. Package redlock exports these errors and documents them.
var (
	ErrHeld       = errors.New("redlock: held by another")
	ErrNoQuorum   = errors.New("redlock: no quorum of masters")
	ErrOverloaded = fmt.Errorf("%w: too many calls of this client are under way", ErrNoQuorum)
	ErrTooSlow    = errors.New("redlock: the quorum came too late")
	ErrGuardTime  = errors.New("redlock: the TTL is above the longest that the fleet allows")
	ErrQuarantine = admission.ErrQuarantine
	ErrKind       = fmt.Errorf("%w: the keys of the name hold the other kind of lock, or data of another program: a name "+
		"has plain locks (Lock, TryLock, Do), or readers and writers (Shared), and never both", ErrNoQuorum)
	// ErrUndecided means that the masters voted for several clients, and no lease has a majority.
	ErrUndecided = fmt.Errorf("%w: the votes are split, and no client has a majority", ErrNoQuorum)
)

// A Failure is how a round, or a call of several rounds, failed. Package redlock makes its public error from it.
type Failure struct {
	Decision error // one of the errors of this package or of package grant; nil where Cause came first
	Cause    error // why the caller stopped waiting; nil where it did not
	Granted  int
	Missing  int
	Open     int // masters that had not answered, or were not asked, when it was decided
	Quorum   int
	N        int
	Left     time.Duration // when a quorum may be free, as far as the refusals tell; negative: they do not tell
	Holder   string        // id of the grant that a majority of masters has; "" if there is none
	Token    int64         // its token
	Masters  []error       // what was wrong, master by master
}

// Error is for logs of this library's own tests; users see the error that package redlock makes.
func (f *Failure) Error() string {
	return fmt.Sprintf("%v (%v), %d of %d granted: %v", f.Decision, f.Cause, f.Granted, f.N, f.Masters)
}

// AsFailure is err as a Failure. The rooms hand failures on as they are, so a look at the type is enough; errors.As
// would allocate for each lock.
func AsFailure(err error) (f *Failure, ok bool) {
	f, _ = err.(*Failure) //nolint:errorlint // failures are handed on as they are
	return f, f != nil
}

// Ended is the failure of a call that has stopped waiting for cause since.
func (f *Failure) Ended(cause error) *Failure {
	ended := *f
	ended.Cause = cause
	return &ended
}

// Unwrap returns all that the failure wraps.
func (f *Failure) Unwrap() []error {
	all := append([]error{f.Decision, f.Cause}, f.Masters...)
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// NoQuorum is the failure of a call that sent nothing: too few masters of the view vote.
func (s *Sender) NoQuorum(view *admission.View, op string, cause error) *Failure {
	f := &Failure{
		Decision: ErrNoQuorum, Cause: cause, Quorum: view.Config.Rule.Least(), N: view.Config.N(), Left: -1,
		Open: (view.Voting & view.Config.Rule.All()).Len(),
	}
	for _, i := range view.Config.Order {
		if !view.Voting.Has(i) {
			f.blame(s.named(i, op, whyNot(view, i)))
		}
	}
	return f
}

// blame adds what was wrong with a master. Where the pool is closed there will never be a quorum again.
func (f *Failure) blame(err error) {
	f.Masters = append(f.Masters, err)
	if errors.Is(f.Decision, ErrNoQuorum) && errors.Is(err, pool.ErrClosed) {
		f.Decision = pool.ErrClosed
	}
}

// A Need is what a call needs of a master to be sent to it.
type Need uint8

// Each need includes those before it.
const (
	NeedsConnection Need = iota // an extension: what a master has, it has, also in quarantine
	NeedsRecord                 // a downgrade: it is accepted under the record that the view has
	NeedsVote                   // an acquire or an import
)

// Refusal returns the vote of a master that need not be asked, since it is not as the call needs it, and reports
// whether there is one. The vote says why.
func (s *Sender) Refusal(view *admission.View, i int, ttl time.Duration, need Need) (v Vote, no bool) {
	m := &view.Masters[i]
	switch {
	case m.Phase == admission.Down, m.Session == 0:
		v.Err = whyNot(view, i)
	case m.Longest > 0 && ttl > m.Longest:
		v.Kind = scripts.Refused
		v.Err = fmt.Errorf("%w: TTL %v, longest TTL %v; raise it in the fleet: redlock guard -set %v",
			ErrGuardTime, ttl, m.Longest, ttl)
	case need >= NeedsRecord && m.Stamp == admission.Unread, need == NeedsVote && m.Phase != admission.Voting,
		m.Phase == admission.Blocked && errors.Is(m.Err, admission.ErrMasterList):
		v.Kind, v.Err = scripts.Abstained, whyNot(view, i)
	}
	return v, v.Err != nil
}

var errNotYet = errors.New("it has not answered yet")

// whyNot says why a master of the view does not vote.
func whyNot(view *admission.View, i int) error {
	return cmp.Or(view.Masters[i].Err, errNotYet)
}

// named names master i in an error, unless it is named already.
func (s *Sender) named(i int, op string, err error) error {
	var e *pool.Error
	if errors.As(err, &e) {
		return err
	}
	return &pool.Error{Addr: s.Pool.Addr(i), Op: op, Err: err}
}

// Failure describes how the round failed. decision may be nil where cause ended the wait before the round was decided.
func (r *Round) Failure(decision, cause error) *Failure {
	now := r.sender.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &Failure{
		Decision: decision, Cause: cause,
		Granted: r.tally.Of(scripts.Granted).Len(), Missing: r.tally.Of(scripts.Missing).Len(),
		Quorum: r.tally.Rule.Least(), N: r.tally.Rule.N(), Left: r.leftLocked(),
		Open: (r.tally.Rule.All() &^ r.tally.In()).Len(),
	}
	asked := r.asked
	if cause == nil {
		asked = r.tally.In() // nobody has waited for the others
	}
	for i := range asked.All() {
		if err := r.complaintLocked(i, &r.votes[i], now.Sub(r.Start)); err != nil {
			f.blame(r.sender.named(i, r.Op, err))
		}
	}
	f.Holder, f.Token, _ = r.holderLocked()
	if errors.Is(decision, ErrUndecided) {
		f.Left = -1 // minorities of other clients, which end as soon as those are answered
	}
	return f
}

// Decision returns why a lost round was lost, by the votes so far. ErrHeld means that another lease has a majority, or
// that a majority of the masters keeps the free name for a waiter; only a lease has a holder in the Failure.
func (r *Round) Decision() error {
	switch {
	case r.TooLong():
		return ErrGuardTime
	case r.OtherKind():
		return ErrKind
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, held := r.holderLocked()
	switch {
	case r.tally.Rule.Lost(r.unableLocked()):
		return ErrNoQuorum
	case held, r.tally.Rule.WonHalf(r.reservedLocked()):
		return ErrHeld
	}
	return ErrUndecided
}

// unableLocked returns the masters that could vote for no client: those of the tally, and those that refused the ballot
// because their clock is off.
func (r *Round) unableLocked() quorum.Set {
	unable := r.tally.Unable()
	for i := range (r.tally.Of(scripts.Stale) | r.tally.Of(scripts.Ahead)).All() {
		if r.View.Masters[i].ClockOff {
			unable |= quorum.One(i)
		}
	}
	return unable
}

// reservedLocked returns the masters on which the name is free and belongs to a waiter.
func (r *Round) reservedLocked() (set quorum.Set) {
	for i := range r.tally.Of(scripts.Held).All() {
		if r.votes[i].Free {
			set |= quorum.One(i)
		}
	}
	return set
}

// Leads reports whether this round has more votes than any other client, or as many and the smaller id. Of callers that
// see the same votes exactly one leads. None does while a master keeps the name for a waiter.
func (r *Round) Leads() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.tally.Of(scripts.Granted).Len()
	for id, set := range r.refusalsLocked() {
		if n := set.Len(); n > mine || n == mine && id < r.Grant {
			return false
		}
	}
	return mine > 0 && r.reservedLocked() == 0
}

// Left is when a quorum may be free, as far as the refusals tell, from when they came; negative: they do not tell.
func (r *Round) Left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leftLocked()
}

func (r *Round) leftLocked() time.Duration {
	left := time.Duration(-1)
	for _, set := range r.tally.Rule.Sets() {
		left = max(left, r.freeInLocked(set))
	}
	return left
}

// holderLocked returns the grant that the refusals show to have a majority of a set of masters, and its token.
func (r *Round) holderLocked() (id string, token int64, ok bool) {
	for _, set := range r.refusalsLocked() {
		if !r.tally.Rule.WonHalf(set) {
			continue
		}
		for i := range set.All() {
			return r.votes[i].Holder, r.votes[i].Token, true
		}
	}
	return "", 0, false
}

// refusalsLocked returns which masters refuse for which grant. Readers of a name do not exclude each other, and a master
// names one of them: they count as one grant.
func (r *Round) refusalsLocked() map[string]quorum.Set {
	by := make(map[string]quorum.Set)
	for i := range (r.tally.Of(scripts.Held) &^ r.reservedLocked()).All() {
		id := r.votes[i].Holder
		if role, _ := scripts.ShareOf(id); role == scripts.Reader {
			id = "readers"
		}
		by[id] |= quorum.One(i)
	}
	return by
}

// complaintLocked says what was wrong with the vote of master i; nil for a vote that says yes, or that another holds
// the name.
func (r *Round) complaintLocked(i int, v *Vote, waited time.Duration) error {
	switch {
	case !v.in:
		return fmt.Errorf("it has not answered for %v", waited.Round(time.Millisecond))
	case pool.IsWrongType(v.Err):
		return fmt.Errorf("the key %q is of another type: the name is used both as a plain lock and by Shared, or this "+
			"library did not write it; use another name or prefix, or delete it (%w)", r.Key, v.Err)
	case v.Err != nil:
		return v.Err
	case v.Kind == scripts.Abstained && v.Record == "":
		return fmt.Errorf("%w: it has no admission record, and will begin a quarantine", admission.ErrQuarantine)
	case v.Kind == scripts.Abstained:
		return fmt.Errorf("%w: its admission record is another than was known, and is being read", admission.ErrQuarantine)
	case v.Kind == scripts.Refused:
		return r.refusal(v)
	case (v.Kind == scripts.Stale || v.Kind == scripts.Ahead) && r.View.Masters[i].ClockOff:
		return fmt.Errorf("its clock is more than %v off the median of the masters: it refused the ballot as %v; "+
			"its time is %d", scripts.Window, v.Kind, v.Time)
	case v.Kind == scripts.Stale || v.Kind == scripts.Ahead:
		return fmt.Errorf("it refused the ballot as %v; its fence is %d, its time %d", v.Kind, v.Fence, v.Time)
	}
	return nil
}

// TooLong reports whether so many masters have refused the TTL for its length that no majority is left.
func (r *Round) TooLong() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	long := quorum.Set(0)
	for i := range r.tally.Of(scripts.Refused).All() {
		if v := &r.votes[i]; errors.Is(cmp.Or(v.Err, r.refusal(v)), ErrGuardTime) {
			long |= quorum.One(i)
		}
	}
	return r.tally.Rule.Lost(long)
}

// OtherKind reports whether on so many masters the key has another type that no majority is left.
func (r *Round) OtherKind() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	other := quorum.Set(0)
	for i := range r.tally.Of(scripts.Failed).All() {
		if pool.IsWrongType(r.votes[i].Err) {
			other |= quorum.One(i)
		}
	}
	return r.tally.Rule.Lost(other)
}

// refusal is what a script of a master has refused: the TTL, or an epoch of old.
func (r *Round) refusal(v *Vote) error {
	rec, err := scripts.ParseRecord(v.Record)
	switch {
	case err == nil && rec.Epoch > r.View.Config.Epoch:
		return fmt.Errorf("%w: it has epoch %d, this program %d", admission.ErrOldMasters, rec.Epoch, r.View.Config.Epoch)
	case err == nil:
		return fmt.Errorf("%w: its longest TTL is %v", ErrGuardTime, rec.Longest)
	}
	return fmt.Errorf("%w: its admission record is %q", ErrGuardTime, v.Record)
}

// freeInLocked is when enough refusing masters of the set are free for a quorum, -1 where that is not known. Those
// that did not refuse count as free.
func (r *Round) freeInLocked(set quorum.Set) time.Duration {
	held := r.tally.Of(scripts.Held) & set
	unable := (r.tally.Of(scripts.Failed) | r.tally.Of(scripts.Abstained) | r.tally.Of(scripts.Refused)) & set
	need := quorum.Quorum(set.Len()) - (set.Len() - unable.Len() - held.Len())
	if need <= 0 || need > held.Len() {
		return -1
	}
	var left []time.Duration
	for i := range held.All() {
		switch v := &r.votes[i]; {
		case v.Left < 0:
		case v.Free:
			left = append(left, v.Left)
		default: // a key is there through the whole of its last millisecond
			left = append(left, v.Left+time.Millisecond)
		}
	}
	if need > len(left) { // keys without a TTL do not end by themselves
		return -1
	}
	slices.Sort(left)
	return left[need-1]
}

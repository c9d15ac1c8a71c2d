package round

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Decisions of a round. Package redlock exports and documents these errors.
var (
	ErrHeld       = errors.New("redlock: held by another")
	ErrNoQuorum   = errors.New("redlock: no quorum of masters")
	ErrOverloaded = fmt.Errorf("%w: too many calls of this client are under way", ErrNoQuorum)
	ErrTooSlow    = errors.New("redlock: quorum reached too late")
	ErrTTLTooLong = errors.New("redlock: the TTL exceeds the max TTL of the deployment")
	ErrKind       = errors.New("redlock: the name is another kind of lock, or a semaphore of another size, until all " +
		"its holders have ended and then its TTL plus 75s have passed; wait, or use another name")
	// ErrForeign means that the keys of the name contain data of another program. A retry would not help.
	ErrForeign = fmt.Errorf("%w: the keys of the name contain data of another program; use another name or prefix",
		ErrNoQuorum)
	// ErrUndecided means that the masters voted for several clients, and no lease has a majority.
	ErrUndecided = fmt.Errorf("%w: the votes are split, and no client has a majority", ErrNoQuorum)
	// ErrReserved means that the masters keep a free name for the first waiter, which does not take it. It may be dead.
	ErrReserved = fmt.Errorf("%w: the name is free, but kept for up to a second for its first waiter, which does not "+
		"take it", ErrNoQuorum)
)

// A Failure describes how a round, or a call of several rounds, failed. Package redlock makes its public error from it.
type Failure struct {
	Decision error // an error of this package or of package lease; nil if Cause came first
	Cause    error // why the caller stopped waiting; nil if it did not
	Granted  int   // number of masters that granted
	Missing  int   // number of masters that do not have the lease
	Open     int   // number of masters without a reply at the time of the failure
	Quorum   int
	N        int
	Unsent   bool          // whether nothing was sent; Granted is then the number of masters that can grant a lock
	New      bool          // whether no master has ever voted, as far as this client knows
	Left     time.Duration // time until a quorum may be free, according to the refusals; negative if unknown
	Holder   string        // id of the lease held on a majority of masters; "" if there is none
	Token    int64         // the token of that lease
	Lingers  bool          // whether that lease may have no holder; if so, its client was notified and will release it
	Again    time.Duration // pause after which a call that does not wait for a holder may try again; 0: it makes no sense
	Ready    time.Duration // time until enough quarantines have ended for a quorum to vote; 0 if unknown
	Masters  []error       // the problem of each master that has one
}

// Error returns a text for this library's tests; users see the error that package redlock makes.
func (f *Failure) Error() string {
	return fmt.Sprintf("%v (%v), %d of %d granted: %v", f.Decision, f.Cause, f.Granted, f.N, f.Masters)
}

// mostReasons bounds the text of Reasons in bytes.
const mostReasons = 240

// Reasons returns why masters did not grant, as in "3 of 5: NOPERM ...; 1 of 5: it does not have the lease". The most
// frequent reason comes first.
func (f *Failure) Reasons() string {
	count := map[string]int{}
	for _, err := range f.Masters {
		count[reason(err)]++
	}
	if f.Missing > 0 {
		count["it does not have the lease"] = f.Missing
	}
	texts := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%d of %d: %s", count[text], f.N, text)
	}
	all := strings.Join(texts, "; ")
	if len(all) > mostReasons {
		all = strings.ToValidUTF8(all[:mostReasons], "") + "..."
	}
	return all
}

// reason returns the text of an error about a master, without the master, and without advice.
func reason(err error) string {
	var e *transport.Error
	var unfit *transport.UnfitError
	cause, _ := admission.Advice(err)
	text := cause.Error()
	switch {
	case errors.As(cause, &unfit):
		text = unfit.What
	case errors.As(cause, &e):
		text = strings.TrimPrefix(e.Reason(), "master is down: ")
	}
	return strings.TrimPrefix(text, "redlock: ")
}

// AsFailure returns err as a Failure. The packages return failures unwrapped, so a type assertion is enough; errors.As
// would allocate for each lock.
func AsFailure(err error) (f *Failure, ok bool) {
	f, _ = err.(*Failure) //nolint:errorlint // failures are handed off as they are
	return f, f != nil
}

// Waitable reports whether a waiting call continues after err.
func Waitable(err error) bool {
	f, ok := AsFailure(err)
	if !ok || f.Cause != nil || errors.Is(f.Decision, ErrForeign) {
		return false
	}
	return errors.Is(f.Decision, ErrHeld) || errors.Is(f.Decision, ErrNoQuorum) ||
		errors.Is(f.Decision, ErrTooSlow)
}

// Ended returns a copy of f with this cause, for a call that has stopped waiting since.
func (f *Failure) Ended(cause error) *Failure {
	ended := *f
	ended.Cause = cause
	return &ended
}

// Waited is like Ended, for a call that waits for other clients: if the votes were split, those clients have the name.
func (f *Failure) Waited(cause error) *Failure {
	ended := f.Ended(cause)
	if errors.Is(f.Decision, ErrUndecided) {
		ended.Decision = ErrHeld
	}
	return ended
}

// Unwrap returns all errors that the failure wraps.
func (f *Failure) Unwrap() []error {
	all := append([]error{f.Decision, f.Cause}, f.Masters...)
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// NoQuorum returns the failure of a call that sent nothing because too few masters of the view can grant a lock.
func (s *Sender) NoQuorum(view *admission.View, cause error) *Failure {
	f := &Failure{
		Decision: ErrNoQuorum, Cause: cause, Quorum: view.Config.Rule.Least(), N: view.Config.Rule.N(), Left: -1,
		Unsent: true, Granted: s.Able(view).Len(), New: !view.Voted,
	}
	if errors.Is(cause, fault.ErrPoolClosed) { // the view may not show it yet
		f.Decision = fault.ErrPoolClosed
	}
	for _, i := range view.Config.Order {
		if err := s.Trouble(i, &view.Masters[i]); err != nil {
			f.blame(s.named(i, err))
		}
	}
	f.Ready = s.ready(view)
	return f
}

// ready returns the time until enough quarantines have ended for a quorum of masters that can vote, or 0 if that time
// is not known.
func (s *Sender) ready(view *admission.View) (wait time.Duration) {
	able := s.Able(view)
	for _, set := range view.Config.Rule.Sets() {
		var lefts []time.Duration
		for i := range (set &^ able).All() {
			if left := s.Quarantine(i, &view.Masters[i]); left > 0 {
				lefts = append(lefts, left)
			}
		}
		need := quorum.Quorum(set.Len()) - (able & set).Len()
		if need > len(lefts) {
			return 0
		}
		if slices.Sort(lefts); need > 0 {
			wait = max(wait, lefts[need-1])
		}
	}
	return wait
}

// blame adds the problem of a master. If the pool is closed, blame replaces ErrNoQuorum, because a retry cannot
// succeed.
func (f *Failure) blame(err error) {
	f.Masters = append(f.Masters, err)
	if errors.Is(f.Decision, ErrNoQuorum) && errors.Is(err, fault.ErrPoolClosed) {
		f.Decision = fault.ErrPoolClosed
	}
}

var errNotYet = errors.New("it has not answered yet")

// whyNot returns why a master in the state m does not vote.
func whyNot(m *admission.State) error { return cmp.Or(m.Err, errNotYet) }

// named adds the address of master i to err, unless err contains it already.
func (s *Sender) named(i int, err error) error {
	var e *transport.Error
	if errors.As(err, &e) {
		return err
	}
	return &transport.Error{Addr: s.Pool.Addr(i), Err: err}
}

// Failure describes how the round failed. decision may be nil if cause ended the wait before the round was decided.
func (r *Round) Failure(decision, cause error) *Failure {
	now := r.sender.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &Failure{
		Decision: decision, Cause: cause,
		Granted: r.tally.Of(quorum.Granted).Len(), Missing: r.tally.Of(quorum.Missing).Len(),
		Quorum: r.tally.Rule.Least(), N: r.tally.Rule.N(), Left: r.leftLocked(), New: !r.View.Voted,
		Open: (r.tally.Rule.All() &^ r.tally.In()).Len(),
	}
	asked := r.asked
	if cause == nil {
		asked = r.tally.In() // the caller did not wait for the other masters
	}
	for i := range asked.All() {
		if err := r.complaintLocked(i, &r.votes[i], now.Sub(r.Start)); err != nil {
			f.blame(r.sender.named(i, err))
		}
	}
	f.Holder, f.Token, _ = r.holderLocked()
	f.Lingers = f.Holder != "" &&
		r.whereLocked(quorum.Held, func(v *Vote) bool { return v.Holder == f.Holder && !v.Lingers }) == 0
	if errors.Is(decision, ErrUndecided) || errors.Is(decision, ErrReserved) {
		f.Left = -1 // minority leases of other clients end as soon as those clients have their replies
	}
	return f
}

// Decision returns why a round was lost, according to the votes so far. ErrTTLTooLong, ErrKind and ErrForeign
// mean that so many masters refuse the TTL, know the name as another kind of lock, or have other data at its keys, that
// a majority is impossible. If fewer masters do, they count as masters that cannot vote. ErrHeld means that another
// lease has a majority, or that a majority of the masters keeps the free name for a waiter. If the name is kept for a
// waiter, the Failure names no holder.
func (r *Round) Decision() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rule := r.tally.Rule
	tooLong := r.whereLocked(quorum.Refused, func(v *Vote) bool {
		return errors.Is(cmp.Or(v.Err, r.refusal(v)), ErrTTLTooLong)
	})
	otherKind := r.tally.Of(quorum.OtherKind)
	foreign := r.whereLocked(quorum.Failed, func(v *Vote) bool { return transport.IsWrongType(v.Err) })
	_, _, held := r.holderLocked()
	switch {
	case rule.Lost(tooLong):
		return ErrTTLTooLong
	case rule.Lost(otherKind):
		return ErrKind
	case rule.Lost(otherKind | foreign):
		return ErrForeign
	case rule.Lost(r.unableLocked()):
		return ErrNoQuorum
	case held, rule.WonHalf(r.reservedLocked()):
		return ErrHeld
	}
	return ErrUndecided
}

// MayBeKind reports whether the missing votes of a round that is lost may change the decision to ErrKind: some masters
// know the name as another kind of lock, and with the missing ones they may be too many.
func (r *Round) MayBeKind() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, missing := r.tally.Of(quorum.OtherKind), r.tally.Rule.All()&^r.tally.In()
	return known != 0 && !r.tally.Rule.Lost(known) && r.tally.Rule.Lost(known|missing)
}

// unableLocked returns the masters that cannot vote for any client: those that the tally counts as unable, and those
// that refused the ballot and whose clock is off.
func (r *Round) unableLocked() quorum.Set {
	unfit := r.tally.Of(quorum.Stale) | r.tally.Of(quorum.Ahead)
	unfit = unfit.Where(func(i int) bool { return r.View.Masters[i].ClockOff })
	return r.tally.Unable() | unfit
}

// Able returns the masters whose votes are in and that have granted the lease, or could have done so with another
// ballot or with a free name.
func (r *Round) Able() quorum.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.In() &^ r.unableLocked()
}

// whereLocked returns the masters with this outcome for whose votes f returns true.
func (r *Round) whereLocked(o quorum.Outcome, f func(*Vote) bool) quorum.Set {
	return r.tally.Of(o).Where(func(i int) bool { return f(&r.votes[i]) })
}

// reservedLocked returns the masters on which the name is free, but reserved for a waiter.
func (r *Round) reservedLocked() quorum.Set {
	return r.whereLocked(quorum.Held, func(v *Vote) bool { return v.Free })
}

// Leads reports whether this round has more votes than any other client, or as many votes and the smaller id. Exactly
// one of the callers that see the same votes leads. While a master keeps the name for a waiter, no caller leads.
func (r *Round) Leads() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.tally.Of(quorum.Granted).Len()
	for id, set := range r.refusalsLocked() {
		if n := set.Len(); n > mine || n == mine && id < r.LeaseID {
			return false
		}
	}
	return mine > 0 && r.reservedLocked() == 0
}

// Left returns the time from the arrival of the refusals until a quorum may be free, according to the TTLs in them. The
// result is negative if that time is unknown.
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

// holderLocked returns the lease that has a majority of a set of masters according to the refusals, and its token.
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

// refusalsLocked returns, for each lease, the masters that refuse because of it. Readers of a name do not exclude each
// other, and a master reports only one of them, so all readers are treated as one lease.
func (r *Round) refusalsLocked() map[string]quorum.Set {
	by := make(map[string]quorum.Set)
	for i := range (r.tally.Of(quorum.Held) &^ r.reservedLocked()).All() {
		id := r.votes[i].Holder
		if role, _ := scripts.ShareOf(id); role == scripts.Reader {
			id = "readers"
		}
		by[id] |= quorum.One(i)
	}
	return by
}

// complaintLocked returns the problem that the vote of master i shows. It returns nil if the master has granted the
// call, or refused it because another client has the name.
func (r *Round) complaintLocked(i int, v *Vote, waited time.Duration) error {
	switch {
	case !v.in:
		if err := r.sender.Trouble(i, &r.View.Masters[i]); err != nil { // known from earlier attempts
			return err
		}
		return fmt.Errorf("it has not answered for %v", waited.Round(time.Millisecond))
	case transport.IsWrongType(v.Err):
		return fmt.Errorf("%w: another program wrote the key %q", v.Err, r.key)
	case v.Err != nil:
		return v.Err
	case v.Outcome == quorum.Abstained && v.Record == "":
		return fmt.Errorf("%w: it has no admission record, and will begin a quarantine", admission.ErrQuarantine)
	case v.Outcome == quorum.Abstained:
		return fmt.Errorf("%w: its admission record has changed, and is being read", admission.ErrQuarantine)
	case v.Outcome == quorum.Refused:
		return r.refusal(v)
	case v.Outcome == quorum.OtherKind:
		return errors.New("it knows the name as " + kindText(v.Kind))
	case (v.Outcome == quorum.Stale || v.Outcome == quorum.Ahead) && r.View.Masters[i].ClockOff:
		return fmt.Errorf("%s: it rejected the attempt as %v", skew.Text(r.View.Masters[i].Off), v.Outcome)
	case v.Outcome == quorum.Stale || v.Outcome == quorum.Ahead:
		text := fmt.Sprintf("it rejected the attempt as %v: its time is %s", v.Outcome, clockTime(v.Time))
		if v.Fence > 0 {
			text += ", and its fence " + clockTime(v.Fence)
		}
		return errors.New(text)
	}
	return nil
}

// kindText describes a kind, as the scripts write it.
func kindText(kind string) string {
	switch kind {
	case scripts.KindLock:
		return "a plain lock (Lock, TryLock, Do)"
	case scripts.KindShared:
		return "a readers-writer lock (RWLock)"
	}
	if size := scripts.SemaphoreSize(kind); size > 0 {
		return fmt.Sprintf("a semaphore of %d (Semaphore)", size)
	}
	return fmt.Sprintf("a lock of the kind %.40q", kind)
}

// clockTime formats the time of a master, which is in microseconds.
func clockTime(us int64) string { return time.UnixMicro(us).UTC().Format("15:04:05.000 UTC") }

// refusal returns the error for a refusal by a script: of the TTL, of an old epoch, or of every lease.
func (r *Round) refusal(v *Vote) error {
	rec, err := scripts.ParseRecord(v.Record)
	switch {
	case err == nil && rec.Epoch > r.View.Config.Epoch:
		return fmt.Errorf("%w: it has epoch %d, this client has epoch %d", admission.ErrOldMasters, rec.Epoch,
			r.View.Config.Epoch)
	case err == nil && rec.Unproven:
		return fmt.Errorf("%w: its record was replaced, and it has not voted since", admission.ErrShardLayout)
	case err == nil:
		return fmt.Errorf("%w: its max TTL is %v", ErrTTLTooLong, rec.MaxTTL)
	}
	return fmt.Errorf("%w: its admission record is %q", ErrTTLTooLong, v.Record)
}

// freeInLocked returns the time until the name is free on enough of the refusing masters of the set for a quorum to
// grant it, or -1 if that time is not known. On masters that could vote and did not refuse, the name is considered
// free.
func (r *Round) freeInLocked(set quorum.Set) time.Duration {
	held := r.tally.Of(quorum.Held) & set
	unable := r.tally.Of(quorum.Failed) | r.tally.Of(quorum.Abstained) | r.tally.Of(quorum.Refused)
	unable = (unable | r.tally.Of(quorum.OtherKind)) & set
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
		default: // a key exists until the end of its last millisecond
			left = append(left, v.Left+time.Millisecond)
		}
	}
	if need > len(left) { // the time of some is not known
		return -1
	}
	slices.Sort(left)
	return left[need-1]
}

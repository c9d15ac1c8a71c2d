package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/redlock/internal/sharding"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An Admin provides the calls of an operator, which act on the masters rather than on the locks of this client. The
// command redlock has all of them as subcommands. With several shards a call acts on all of them unless it names one,
// and its error names the shard.
type Admin struct {
	l *Locker
}

// Admin returns the operator calls of l. It sends nothing.
func (l *Locker) Admin() Admin { return Admin{l} }

// Masters returns the state of each master, in the order of the configuration, shard by shard. It sends nothing and
// does not block.
func (a Admin) Masters() []redlockinfo.Master {
	var list []redlockinfo.Master
	for _, s := range a.l.shards {
		list = append(list, s.mastersOf(s.voters.View())...)
	}
	return list
}

// Check reports problems of the masters: the findings of [pool.Pool.Check] for the prefix and the durable masters of
// this Locker, and why masters do not vote or grant no locks. Like [Locker.Healthy] it may lock and release a probe
// name. A missing quorum is a separate finding, and a failure. The findings are sorted by master and by severity, the
// most severe first. A healthy deployment has none.
//
// Check opens its own connections, and returns within two dial timeouts, or when ctx ends. With several shards it
// returns the findings of the shards that it reached even if the error is not nil.
func (a Admin) Check(ctx context.Context) ([]pool.Finding, error) {
	lists := make([][]pool.Finding, len(a.l.shards))
	err := a.l.each(func(i int, s *shard) (err error) {
		lists[i], err = operator{s}.check(ctx)
		return err
	})
	return slices.Concat(lists...), err
}

// Admit lets all masters vote immediately, without quarantine. Call it only if no client holds a lock of this prefix:
// on new masters, in tests, in benchmarks. If a client does hold one, two clients may hold its name at the same time
// until the TTL has expired.
//
// Admit returns when every master votes. It retries masters that are down or cannot be admitted until ctx ends, so it
// may be called while servers start. A voting master that loses its data meanwhile is not admitted again: it waits in
// quarantine. Admit needs the records of a majority. If a master belongs to another configuration than this Locker,
// Admit returns an error such as [ErrMasterList] and changes no master. If ctx ends first, the error lists the masters
// that do not vote; the others vote. Admit may be repeated. With [WithoutRestartGuard] it does nothing. In tests that
// start servers, redlocktest.Admit is shorter.
func (a Admin) Admit(ctx context.Context) error {
	return a.l.each(func(_ int, s *shard) error { return operator{s}.admit(ctx) })
}

// Quarantine begins the quarantine of the master named addr. It replaces an admission record that names other masters
// or cannot be read; no client may still depend on that record. It changes nothing and returns [ErrMasterList] unless a
// majority of the masters names the configuration of this Locker, or no other master names a different one.
func (a Admin) Quarantine(ctx context.Context, addr string) error {
	var known atomic.Bool // a master outside a cluster is in the shard of each bucket
	err := a.l.each(func(_ int, s *shard) error {
		masters := s.voters.View().Config.Order
		at := slices.IndexFunc(masters, func(i int) bool { return s.pool.Addr(i) == addr })
		if at < 0 {
			return nil
		}
		known.Store(true)
		return operator{s}.quarantine(ctx, masters[at])
	})
	if !known.Load() {
		return invalid("no master is named %q", addr)
	}
	return err
}

// RaiseMaxTTL allows TTLs up to d in the deployment while clients run and locks are held. Call it before clients use
// longer TTLs; then give the clients the new [WithMaxTTL], one after the other, and then the longer TTL.
//
// RaiseMaxTTL writes in two steps. First it gives every master a quarantine of d, so that no master that loses its data
// votes too early. Only when all masters have it at the same time does it let each accept TTLs up to d. So all masters
// must be up. If RaiseMaxTTL ends early, some masters have a longer quarantine, but no master accepts longer TTLs. It
// may be repeated. Running clients read the records again: a Lock takes one more round trip, a TryLock may fail once.
//
// To lower the max TTL, admit the masters again with no client running: stop all clients, delete the admission records,
// and start the clients with the smaller value.
//
// It returns ErrInvalid if d is out of range, below the value of a master, or above the repl-backlog-ttl of a master,
// and if the restart guard is off. It returns ErrNoQuorum with the reason of each master that does not have the new
// value. Other errors are the error of ctx, and ErrClosed.
func (a Admin) RaiseMaxTTL(ctx context.Context, d time.Duration) error {
	return a.l.each(func(_ int, s *shard) error { return operator{s}.raiseMaxTTL(ctx, d) })
}

// Configuration returns the configuration in use, one for each shard. Masters have the names that [pool.Pool.Addr]
// returns.
func (a Admin) Configuration() []Configuration {
	list := make([]Configuration, len(a.l.shards))
	for i, s := range a.l.shards {
		list[i] = s.configuration()
	}
	return list
}

// Reconfigure makes this Locker use the next configuration, one for each shard. Held locks stay valid. c must be the
// configuration that follows the current one. If c is the current configuration, or only lists its masters without an
// epoch, Reconfigure changes nothing. docs/operations.md shows how to move the clients of a deployment from one
// configuration to the next, and why it is safe.
//
// When Reconfigure changes from one set of masters to a joint configuration, it waits until a majority of the next
// masters votes: new masters are in quarantine first. From then on every acquire and extension needs a majority of
// each set, and held locks are extended to the next masters. When Reconfigure changes from a joint configuration to
// the next set, it waits until each held lock that is extended is on a majority of the next masters. Then the old
// masters get releases only; after the max TTL their connections are closed unless another Locker of the pool uses
// them.
//
// On failure nothing has changed. The error is ErrInvalid if c is not a valid successor; a description if c is the next
// set alone and the masters do not allow that yet (redlock set --finish); ErrNoQuorum with the error of ctx if too
// few of the next masters vote; the error of ctx; or ErrClosed. A Locker that was suspended while the deployment
// changed accepts any later configuration; until then it acquires nothing. Concurrent calls run one after the other.
func (a Admin) Reconfigure(ctx context.Context, c ...Configuration) error {
	if len(c) != len(a.l.shards) {
		return invalid("%d configurations, but there are %d shards: give one for each", len(c), len(a.l.shards))
	}
	return a.l.each(func(i int, s *shard) error { return operator{s}.reconfigure(ctx, c[i]) })
}

// ForceRelease takes the lease with this id from its holder; [Locker.Inspect] returns the id. Use it if the holder is
// dead or hangs and waiting for its TTL takes too long.
//
// ForceRelease endangers the resource that the lock protects. A message makes the holder check its lock immediately,
// so a holder that is alive and reachable learns of the loss within two round trips. If the message is lost, the
// holder learns of the loss at its next extension, a third of its TTL later. Until then two clients may believe that
// they hold the name. Only a resource that refuses a smaller token than it has seen is safe: the next holder has a
// larger one. [Admin.RequestRelease] endangers nothing.
//
// On every master that can be reached it deletes this lease and no other, and raises the fence to a new ballot, so that
// late messages of the holder are refused. Then it wakes the first waiter, as any release does.
//
// It returns the number of masters that deleted the lease. The error is nil if a quorum has confirmed that it no longer
// has the lease; otherwise it is ErrNoQuorum with the reason of each master that did not answer. A holder that extends
// the lock at that moment may restore it on masters that have deleted it: inspect the name again, and repeat the call
// if the lease is still there.
func (a Admin) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	return operator{a.l.of(name)}.forceRelease(ctx, name, id)
}

// RequestRelease requests the holder of name to release it, and returns how many holders have received the request: 0
// or 1, or the readers of an [RWLock]. It does not wait for the release, and takes the lock from no holder: a client
// that uses [ReleaseRequested] decides when it unlocks, and other clients ignore the request. The name then belongs to
// the first waiter, as after any Unlock.
//
// The request is a message that is not stored. It reaches a client that has called ReleaseRequested, or has held the
// lock for a second. Errors are those of [Locker.Inspect].
func (a Admin) RequestRelease(ctx context.Context, name string) (heard int, err error) {
	return operator{a.l.of(name)}.requestRelease(ctx, name)
}

// tools implements the calls that only the command and the tests of this module use: see package private.
type tools struct{ *Locker }

var _ = private.Provide(
	func(s private.Settings) any { return hidden(s) },
	func(locker any) private.Tools { return tools{locker.(*Locker)} },
	func(opts any) (string, time.Duration) {
		cfg, err := configure(opts.([]Option))
		if err != nil {
			return private.DefaultPrefix, private.DefaultMaxTTL // New reports err
		}
		return cfg.prefix, cfg.guard
	},
	errIncomplete,
	func(lock any) (on, n int) { return heldOn(lock.(*Lock)) },
)

// heldOn returns how many of the n masters are connected and known to have the lock. on is usually n, but smaller for a
// moment after Lock, until the last masters have answered.
func heldOn(k *Lock) (on, n int) {
	i := k.hold.Lease().Info()
	return i.On, i.Expects
}

// Warnings returns the warnings about the configuration, one sentence each.
func (t tools) Warnings() []string {
	var list []string
	for _, s := range t.shards {
		list = append(list, s.warnings...)
	}
	return list
}

// Logger returns the logger that the options have set.
func (t tools) Logger() *slog.Logger { return t.shards[0].cfg.log }

// Settle waits until ctx ends, or until each master has answered or is known to be down and it is known whether the
// master votes.
func (t tools) Settle(ctx context.Context) {
	_ = t.each(func(_ int, s *shard) error {
		_, err := s.voters.Await(ctx, (*admission.View).Settled)
		return err
	}) // ignore the error: if ctx ends early, the states show it
}

// Shard returns the number of the shard of a name.
func (t tools) Shard(name string) int { return sharding.Pick(name, len(t.shards)) }

// Spare returns how many more masters may fail, in the worst case, before no lock can be acquired; -1 if no lock can
// be acquired now.
func (t tools) Spare() int {
	spare := math.MaxInt
	for _, s := range t.shards {
		view := s.voters.View()
		able := s.sender.Able(view)
		for _, set := range view.Config.Rule.Sets() {
			spare = min(spare, (able&set).Len()-quorum.Quorum(set.Len()))
		}
	}
	return max(spare, -1)
}

// WrongList returns the error of a master that says that the list of this client is wrong or out of date, if no quorum
// of its shard votes.
func (t tools) WrongList() error {
	for _, s := range t.shards {
		view := s.voters.View()
		for _, i := range view.Config.Order {
			err := view.Masters[i].Err
			if admission.WrongList(err) && !view.Voting.MajorityOf(view.Config.Rule.Old) {
				return fmt.Errorf("%s: %w", s.pool.Addr(i), err)
			}
		}
	}
	return nil
}

// Member returns the *Lock of name in locks, which must be a *Locks; nil if locks does not contain the name.
func (tools) Member(locks any, name string) any {
	for _, k := range locks.(*Locks).locks {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// Change reads the records of all masters that can be reached, and reports the progress of the change away from the old
// masters of this Locker's configuration or, if the epoch is even, of the change that led to its masters. It returns
// the error of ctx, or ErrClosed.
func (t tools) Change(ctx context.Context) (c private.Change, err error) {
	l := operator{t.shards[0]}
	err = l.withRecords(ctx, "change", func(view *admission.View) error {
		c = reconfig.Look(l.seen(view, nil))
		return nil
	})
	return c, err
}

// RaiseEpoch writes the epoch of this Locker's configuration into the records of all masters that can be reached. Once
// a majority of the old masters has it, clients with an earlier configuration acquire nothing there, and their locks
// end with their validity. So it must be called only when every client uses the joint configuration. These clients
// then read each record again. With an even epoch RaiseEpoch ends a change: from then on clients that still use the
// joint configuration are refused.
//
// It fails if the epoch is even and the records of no majority say that the set is final. It returns ErrNoQuorum with
// the reason of each master that does not have the epoch, if it did not reach a majority of each set. Other errors are
// the error of ctx, ErrClosed, and ErrInvalid for epoch 0. Records that were written stay, and calling it again is
// harmless.
func (t tools) RaiseEpoch(ctx context.Context) error {
	return operator{t.shards[0]}.writeChange(ctx, reconfig.Raise)
}

// FinishChange makes the next masters of this Locker's configuration final, once the change is complete: see Change.
// If the old masters do not show that it is complete, FinishChange writes nothing and returns an error with the time
// that is left. It does not wait, and it does not check whether clients use the joint configuration; clients that use
// it continue.
//
// It returns ErrInvalid if the epoch is even, and otherwise the errors of RaiseEpoch.
func (t tools) FinishChange(ctx context.Context) error {
	return operator{t.shards[0]}.writeChange(ctx, reconfig.Finish)
}

// AbortChange abandons a change of the masters, and makes the old masters of this Locker's configuration final again,
// at the next epoch: {"epoch": 2, "masters": [the old]} after epoch 1. It undoes RaiseEpoch, as long as FinishChange
// has not made the next masters final. It also needs a majority of the next masters that votes, because it first
// prevents the next masters from becoming final. Clients with the joint configuration adopt the new one by themselves
// and keep their locks. The next change begins at the epoch that follows.
//
// It returns ErrInvalid if the epoch is even, or the next masters are final already. If too few records can be
// written, it writes none and returns ErrNoQuorum with the reason of each master. Other errors are the error of ctx,
// and ErrClosed. Calling it again is harmless.
func (t tools) AbortChange(ctx context.Context) error {
	return operator{t.shards[0]}.writeChange(ctx, reconfig.Abort)
}

package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An Admin provides the calls of an operator. They act on the masters rather than on the locks of this client, and most
// of them are subcommands of the command redlock. Calls without the name of a lock or a master act on all shards, and
// their errors name the shard.
type Admin struct {
	l *Locker
}

// Admin returns the operator calls of l. Admin sends nothing.
func (l *Locker) Admin() Admin { return Admin{l} }

// Masters returns the state of each master, shard by shard and in the order of the configuration. It sends nothing and
// does not block.
func (a Admin) Masters() []redlockinfo.Master {
	var list []redlockinfo.Master
	for _, s := range a.l.shards {
		list = append(list, s.mastersOf(s.voters.View())...)
	}
	return list
}

// Check says whether locks can be acquired, and what is wrong with the masters: what each master answers to a client of
// this prefix, and why masters do not vote or grant no locks. A missing quorum is a separate finding of severity
// [redlockinfo.Failure]. The findings are sorted by shard and master, then by severity with the most severe first. A
// healthy deployment of three masters or more has no findings.
//
// Check opens its own connections, and like [Locker.Healthy] it may lock and release a probe name. It returns within
// two dial timeouts, or when ctx ends. If the check of a shard fails, Check returns an error and the verdict on the
// other shards.
func (a Admin) Check(ctx context.Context) (redlockinfo.Verdict, error) {
	list := make([]redlockinfo.Verdict, len(a.l.shards))
	err := a.l.each(func(i int, s *shard) (err error) {
		list[i], err = operator{s}.check(ctx)
		return err
	})
	return diagnose.Join(list), err
}

// Admit lets all masters vote immediately, without quarantine. Call it only if no client holds a lock of this prefix:
// on new masters, in tests, in benchmarks. If a client does hold a lock, another client may acquire the same name
// before the TTL of that lock has expired.
//
// Admit returns when every master votes. Until ctx ends it retries masters that are down or cannot be admitted, so it
// may be called while servers start. A master that votes and then loses its data during the call is not admitted again,
// but waits in quarantine. Admit needs the records of a majority. If a master belongs to another configuration than
// this Locker, Admit returns an error such as [ErrMasterList] and changes no master. If ctx ends first, the error lists
// the masters that do not vote; the others vote. Admit may be repeated. With [WithoutRestartGuard] it does nothing.
// Tests that start servers can call redlocktest.Admit, which needs no Locker.
func (a Admin) Admit(ctx context.Context) error {
	return a.l.each(func(_ int, s *shard) error { return operator{s}.admit(ctx) })
}

// Quarantine puts the master named addr into quarantine. It replaces an admission record that names other masters or
// cannot be read: call it only if no other client depends on that record. It returns [ErrMasterList] and changes
// nothing if another master's record names a different configuration, unless the records of a majority name the
// configuration of this Locker.
func (a Admin) Quarantine(ctx context.Context, addr string) error {
	var known atomic.Bool // a master outside a cluster is in the shard of each bucket
	err := a.l.each(func(_ int, s *shard) error {
		masters := s.voters.View().Config.Order
		k := slices.IndexFunc(masters, func(i int) bool { return s.pool.Addr(i) == addr })
		if k < 0 {
			return nil
		}
		known.Store(true)
		return operator{s}.quarantine(ctx, masters[k])
	})
	if !known.Load() {
		return invalid("no master is named %q", addr)
	}
	return err
}

// RaiseMaxTTL raises the max TTL of the deployment to d while clients run and locks are held. Call it before any client
// uses a longer TTL. Afterwards give each client the new [WithMaxTTL], and when all clients have it, the longer TTL.
//
// RaiseMaxTTL writes the records in two steps, for which all masters must be up. First it gives every master a
// quarantine of d, so that no master that loses its data votes too early. When all masters have this quarantine at the
// same time, it makes each master accept TTLs up to d. If RaiseMaxTTL fails, some masters may have the longer
// quarantine, or accept the longer TTLs; repeat the call. Running clients then read the records again: a Lock takes one
// more round trip, and a TryLock may fail once.
//
// To lower the max TTL, stop all clients, delete the admission records, and start the clients with the smaller value.
//
// RaiseMaxTTL returns ErrInvalid if d is out of range, below the max TTL of a master, or above the repl-backlog-ttl of
// a master, and if the restart guard is off. It returns ErrNoQuorum with the reason of each master that does not have
// the new value. Other errors are the error of ctx, and ErrClosed.
func (a Admin) RaiseMaxTTL(ctx context.Context, d time.Duration) error {
	return a.l.each(func(_ int, s *shard) error { return operator{s}.raiseMaxTTL(ctx, d) })
}

// Configuration returns the current configuration of each shard. It names the masters as [pool.Pool.Addr] does.
func (a Admin) Configuration() []Configuration {
	list := make([]Configuration, len(a.l.shards))
	for i, s := range a.l.shards {
		list[i] = s.configuration()
	}
	return list
}

// Reconfigure makes this Locker use the next configuration; c has one for each shard. Held locks stay valid. Each
// configuration must be the successor of the current one. If it is the current one, or lists the current masters
// without an epoch, Reconfigure changes nothing. docs/operations.md shows how to move the clients of a deployment from
// one configuration to the next, and why it is safe.
//
// When Reconfigure changes from one set of masters to a joint configuration, it waits until a majority of the next
// masters votes, since new masters are in quarantine first. From then on every acquire and extension needs a majority
// of each set, and held locks are extended on the next masters too. When Reconfigure changes from a joint configuration
// to the next set, it waits until each held lock with background extension is on a majority of the next masters. Then
// the old masters receive releases only; after the max TTL their connections are closed unless another Locker of the
// pool uses them.
//
// On failure nothing has changed. Reconfigure returns:
//
//   - ErrInvalid if c is not a valid successor;
//   - an error with a description if c is the next set alone, but the masters do not allow that yet
//     (redlock set --finish);
//   - ErrNoQuorum with the error of ctx if ctx ends before enough of the next masters vote;
//   - the error of ctx, or ErrClosed.
//
// A Locker that was suspended while the deployment changed accepts any later configuration; until it gets one, it
// acquires nothing. Concurrent calls run one after the other.
func (a Admin) Reconfigure(ctx context.Context, c ...Configuration) error {
	if len(c) != len(a.l.shards) {
		return invalid("%d configurations, but there are %d shards: give one for each", len(c), len(a.l.shards))
	}
	return a.l.each(func(i int, s *shard) error { return operator{s}.reconfigure(ctx, c[i]) })
}

// ForceRelease deletes the lease with this id, although its holder has not released it. [Locker.Inspect] returns the
// id. Use ForceRelease if the holder is dead or hangs, and waiting for the TTL to expire takes too long.
//
// ForceRelease endangers the resource that the lock protects. A message makes the holder check its lock immediately, so
// a holder that is alive and reachable learns of the loss within two round trips. If the message is lost, the holder
// learns of the loss at its next extension, a third of its TTL later. Until the holder learns of the loss, two clients
// may believe that they hold the name. Only a resource that refuses a smaller token than it has seen is safe, because
// the next holder has a larger token. [Admin.RequestRelease] endangers nothing.
//
// On every master that can be reached, ForceRelease deletes only this lease, and raises the fence to a new ballot, so
// that the master refuses late messages of the holder. Then the first waiter is woken, as by any release.
//
// The lease may be that of a slot of a [Semaphore]; name is then the name of the semaphore.
//
// ForceRelease returns the number of masters that deleted the lease. The error is nil if a quorum has confirmed that it
// no longer has the lease; otherwise it is ErrNoQuorum with the reason of each master that did not answer. A holder
// that extends the lock at that moment may restore it on masters that have deleted it: inspect the name again, and
// repeat the call if the lease still exists.
func (a Admin) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	return operator{a.l.of(name)}.forceRelease(ctx, name, id)
}

// RequestRelease asks the holder of name to release the lock, and returns how many holders have received the request: 0
// or 1, or for an [RWLock] the number of readers, or for a [Semaphore] that of held slots. It does not wait for the
// release, and never takes the lock away from a holder: a client that uses [Lock.ReleaseRequested] decides when to
// unlock, and other clients ignore the request. A name that is released after the request belongs to the first waiter,
// as after any Unlock.
//
// The request is a message that is not stored. It reaches a client that has called ReleaseRequested, or that has held
// the lock for a second. Errors are those of [Locker.Inspect].
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

// heldOn returns the number of masters that are connected and known to have the lock, and the number of all masters.
// The two are usually equal, but not just after Lock, when some masters have not answered yet.
func heldOn(k *Lock) (on, n int) {
	i := k.hold.Lease().Info()
	return i.On, i.Expects
}

// Warnings returns the warnings about the configuration, one sentence each.
func (t tools) Warnings() []string {
	var list []string
	for _, s := range t.shards {
		for _, w := range s.warnings {
			list = append(list, w.text)
		}
	}
	return list
}

// Logger returns the logger that the options have set.
func (t tools) Logger() *slog.Logger { return t.shards[0].cfg.log }

// FileUnusable records whether redlockfile.Follow cannot use its file, for Stats.
func (t tools) FileUnusable(yes bool) { t.fileUnusable.Store(yes) }

// Settle waits until the state of each master is known: down, voting or not voting. It returns early if ctx ends.
func (t tools) Settle(ctx context.Context) {
	_ = t.each(func(_ int, s *shard) error {
		_, err := s.voters.Await(ctx, (*admission.View).AllKnown)
		return err
	}) // ignore the error: the states of the masters show that ctx ended early
}

// Shard returns the number of the shard of a name.
func (t tools) Shard(name string) int { return sharding.Pick(name, len(t.shards)) }

// Transports returns the connections of each shard.
func (t tools) Transports() []*transport.Transport {
	list := make([]*transport.Transport, len(t.shards))
	for i, s := range t.shards {
		list[i] = s.pool
	}
	return list
}

// Verdict returns the verdict of this moment, without an examination of the masters. unable are findings about masters
// that grant no lock although this Locker has not seen it; each applies to the master in every shard.
func (t tools) Verdict(unable ...redlockinfo.Finding) redlockinfo.Verdict {
	list := make([]redlockinfo.Verdict, len(t.shards))
	for i, s := range t.shards {
		c := s.present()
		for k, m := range c.Masters {
			if slices.ContainsFunc(unable, func(f redlockinfo.Finding) bool { return f.Master == m.Addr }) {
				c.Able &^= quorum.One(c.View.Config.Order[k])
			}
		}
		list[i] = c.Judge(unable)
	}
	return diagnose.Join(list)
}

// Lists returns the hash of the configuration of each shard.
func (t tools) Lists() []string {
	var list []string
	for _, s := range t.shards {
		list = append(list, s.hash(s.voters.View().Config))
	}
	return list
}

// WrongList returns an error if a master's record shows that the list of this Locker is wrong or out of date, and no
// majority of the master's shard votes.
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

// Change reads the records of all masters that can be reached, and returns the progress of a change of the masters: the
// change away from the old masters of this Locker's configuration or, if its epoch is even, the change that led to its
// masters. Change returns the error of ctx, or ErrClosed.
func (t tools) Change(ctx context.Context) (c private.Change, err error) {
	l := operator{t.shards[0]}
	err = l.withRecords(ctx, "change", func(view *admission.View) error {
		c = reconfig.Look(l.seen(view, nil))
		return nil
	})
	return c, err
}

// RaiseEpoch writes the epoch of this Locker's configuration into the records of all masters that can be reached. Once
// a majority of the old masters has the epoch, clients with an earlier configuration acquire no locks on them, and the
// locks of these clients end with their validity. So RaiseEpoch must be called only when every client uses the joint
// configuration. Clients read each changed record again. Next masters with a shorter max TTL than the old masters, such
// as those that were admitted with the default, get the longest max TTL of the old ones. With an even epoch RaiseEpoch
// ends a change: from then on clients that still use the joint configuration are refused.
//
// RaiseEpoch fails if the epoch is even, and no majority of records says that the set is final. It returns ErrNoQuorum,
// with the reason of each master that does not have the epoch, if it did not reach a majority of each set. Other errors
// are the error of ctx, ErrClosed, and ErrInvalid for epoch 0. Records that were written before a failure stay, and
// RaiseEpoch may be repeated.
func (t tools) RaiseEpoch(ctx context.Context) error {
	o := operator{t.shards[0]}
	if err := o.writeChange(ctx, reconfig.Raise); err != nil {
		return err
	}
	return o.levelMaxTTL(ctx)
}

// FinishChange makes the next masters of this Locker's configuration final, once the change is complete: see Change. If
// the records of the old masters do not show that the change is complete, FinishChange writes nothing and returns an
// error with the remaining time. It does not wait, and does not check whether clients use the joint configuration.
// Clients with the joint configuration continue to work.
//
// FinishChange returns ErrInvalid if the epoch is even, and otherwise the errors of RaiseEpoch.
func (t tools) FinishChange(ctx context.Context) error {
	return operator{t.shards[0]}.writeChange(ctx, reconfig.Finish)
}

// AbortChange abandons a change of the masters. It makes the old masters of this Locker's configuration final again, at
// the next epoch: {"epoch": 2, "masters": [the old]} after epoch 1. AbortChange undoes RaiseEpoch as long as
// FinishChange has not made the next masters final. Because AbortChange first prevents the next masters from becoming
// final, it also needs votes of a majority of the next masters. Clients with the joint configuration adopt the new one
// by themselves and keep their locks. The next change begins at the epoch that follows.
//
// AbortChange returns ErrInvalid if the epoch is even, or if the next masters are already final. If too few records can
// be written, it writes none and returns ErrNoQuorum with the reason of each master. Other errors are the error of ctx,
// and ErrClosed. AbortChange may be repeated.
func (t tools) AbortChange(ctx context.Context) error {
	return operator{t.shards[0]}.writeChange(ctx, reconfig.Abort)
}

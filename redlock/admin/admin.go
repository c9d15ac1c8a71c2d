package admin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An Admin provides the calls of an operator. They act on the masters rather than on the locks of this client, and most
// of them are subcommands of the command redlock. Calls without the name of a lock or a master act on all shards, and
// their errors name the shard.
type Admin struct{ locker *redlock.Locker }

// Of returns the operator calls of l. Of sends nothing.
func Of(l *redlock.Locker) Admin {
	client.SetOf(l) // panics if l is nil
	return Admin{l}
}

func (a Admin) set() *client.Set { return client.SetOf(a.locker) }

// Masters returns the state of each master, shard by shard and in the order of the configuration. It sends nothing and
// does not block.
func (a Admin) Masters() []redlockinfo.Master { return a.set().Masters() }

// Check says whether locks can be acquired, and what is wrong with the masters: what each master answers to a client of
// this prefix, and why masters do not vote or grant no locks. A missing quorum is a separate finding of severity
// [redlockinfo.Failure]. The findings are sorted by shard and master, then by severity with the most severe first. A
// healthy deployment of three masters or more has no findings.
//
// Check opens its own connections, and like [redlock.Locker.Healthy] it may lock and release a probe name. It returns
// within two dial timeouts, or when ctx ends. If the check of a shard fails, Check returns an error and the verdict on
// the other shards.
func (a Admin) Check(ctx context.Context) (redlockinfo.Verdict, error) {
	list := make([]redlockinfo.Verdict, len(a.set().Clients))
	err := a.set().EachIn(ctx, redlockinfo.OpCheck, func(i int, c *client.Client) (err error) {
		list[i], err = c.Check(ctx)
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
// this Locker, Admit returns an error such as [redlock.ErrMasterList] and changes no master. If ctx ends first, the
// error lists the masters that do not vote; the others vote. Admit may be repeated. With [redlock.WithoutRestartGuard]
// it does nothing. Tests that start servers can call redlocktest.Admit, which needs no Locker.
func (a Admin) Admit(ctx context.Context) error {
	return a.set().EachIn(ctx, redlockinfo.OpAdmit, func(_ int, c *client.Client) error {
		return c.Admit(ctx)
	})
}

// Quarantine puts the master named addr into quarantine. It replaces an admission record that names other masters or
// cannot be read: call it only if no other client depends on that record. It returns [redlock.ErrMasterList] and
// changes nothing if another master's record names a different configuration, unless the records of a majority name the
// configuration of this Locker.
func (a Admin) Quarantine(ctx context.Context, addr string) error {
	var known atomic.Bool // a master outside a cluster is in the shard of each bucket
	err := a.set().EachIn(ctx, redlockinfo.OpQuarantine, func(_ int, c *client.Client) error {
		has, err := c.Quarantine(ctx, addr)
		if has {
			known.Store(true)
		}
		return err
	})
	if ctx != nil && !known.Load() {
		return client.Invalid("no master is named %q", addr)
	}
	return err
}

// RaiseMaxTTL raises the max TTL of the deployment to d while clients run and locks are held. Call it before any client
// uses a longer TTL. Afterwards give each client the new [redlock.WithMaxTTL], and when all clients have it, the longer
// TTL.
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
	return a.set().EachIn(ctx, redlockinfo.OpRaiseMaxTTL, func(_ int, c *client.Client) error {
		return c.RaiseMaxTTL(ctx, d)
	})
}

// Configuration returns the current configuration of each shard. It names the masters as [pool.Pool.Addr] does.
func (a Admin) Configuration() []redlock.Configuration {
	list := make([]redlock.Configuration, len(a.set().Clients))
	for i, c := range a.set().Clients {
		list[i] = redlock.Configuration(c.Configuration())
	}
	return list
}

// Reconfigure makes this Locker use the next configuration; next has one for each shard. Held locks stay valid. Each
// configuration must be the successor of the current one. If it is the current one, or lists the current masters
// without an epoch, Reconfigure changes nothing. docs/change.md shows how to move the clients of a deployment from
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
//   - ErrInvalid if next is not a valid successor;
//   - an error with a description if next is the next set alone, but the masters do not allow that yet
//     (redlock set --finish);
//   - ErrNoQuorum with the error of ctx if ctx ends before enough of the next masters vote;
//   - the error of ctx, or ErrClosed.
//
// A Locker that was suspended while the deployment changed accepts any later configuration; until it gets one, it
// acquires nothing. Concurrent calls run one after the other.
func (a Admin) Reconfigure(ctx context.Context, next ...redlock.Configuration) error {
	if ctx != nil && len(next) != len(a.set().Clients) {
		return client.Invalid("%d configurations, but there are %d shards: give one for each",
			len(next), len(a.set().Clients))
	}
	return a.set().EachIn(ctx, redlockinfo.OpReconfigure, func(i int, c *client.Client) error {
		return c.Reconfigure(ctx, client.Configuration(next[i]))
	})
}

// ForceRelease deletes the lease with this id, although its holder has not released it. [redlock.Locker.Inspect]
// returns the id. Use ForceRelease if the holder is dead or hangs, and waiting for the TTL to expire takes too long.
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
// The lease may be that of a slot of a [redlock.Semaphore]; name is then the name of the semaphore.
//
// ForceRelease returns the number of masters that deleted the lease. The error is nil if a quorum has confirmed that it
// no longer has the lease; otherwise it is ErrNoQuorum with the reason of each master that did not answer. A holder
// that extends the lock at that moment may restore it on masters that have deleted it: inspect the name again, and
// repeat the call if the lease still exists.
func (a Admin) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	if err = client.CheckContext(ctx, redlockinfo.OpForceRelease, name); err != nil {
		return 0, err
	}
	released, err = a.set().Of(name).ForceRelease(ctx, name, id)
	return released, a.set().Public(err)
}

// RequestRelease asks the holder of name to release the lock, and returns to how many holders it sent the request: 0 or
// 1, or for an [redlock.RWLock] at most the number of readers, or for a [redlock.Semaphore] that of held slots. It does
// not wait for the release, and never takes the lock away from a holder: a client that uses
// [redlock.Lock.ReleaseRequested] decides when to unlock, and other clients ignore the request. A name that is released
// after the request belongs to the first waiter, as after any Unlock.
//
// The request is a message that is neither stored nor confirmed: a holder that is connected, but stopped, counts. It is
// sent to a client that has called ReleaseRequested, or that has held the lock for a second. Errors are those of
// [redlock.Locker.Inspect].
func (a Admin) RequestRelease(ctx context.Context, name string) (asked int, err error) {
	if err = client.CheckContext(ctx, redlockinfo.OpRequestRelease, name); err != nil {
		return 0, err
	}
	asked, err = a.set().Of(name).RequestRelease(ctx, name)
	return asked, a.set().Public(err)
}

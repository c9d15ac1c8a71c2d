package redlock

import (
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An Option configures a [Locker]. [New] checks the options and returns [ErrInvalid] if one is out of range.
type Option interface{ option }

// A LockOption configures one call or, if passed to [New], all calls of the Locker. A call checks its options before it
// sends anything. Durations between 0 and 10 µs are refused, since they are numbers without a unit.
type LockOption interface{ lockOption }

type (
	option     = client.Option
	lockOption = client.CallOption
)

// configure returns the settings of a Locker with these options.
func configure(opts []Option) (*client.Config, error) {
	cfg, err := client.Configure(opts)
	if err == nil {
		cfg.Public = public
		tracePublic(cfg)
	}
	return cfg, err
}

// ofLocker and ofLock make options from functions that set fields.
func ofLocker(f func(*client.Config)) Option { return client.OptionFunc(f) }

func ofLock(f func(*client.Settings)) LockOption { return client.CallOptionFunc(f) }

// WithTTL sets how long the masters keep the lock after an acquire or an extension: from 10 ms to the max TTL or,
// without the restart guard, to 24 hours. The default is 10 s. The TTL is rounded up to whole milliseconds for the
// masters; the holder does not use the added fraction. A held lock is extended every third of the TTL. So the TTL
// bounds how long the name stays locked after its holder dies, not how long a lock may be held.
func WithTTL(ttl time.Duration) LockOption { return ofLock(func(s *client.Settings) { s.TTL = ttl }) }

// WithMaxHold bounds how long a lock is held, so that a worker that hangs does not keep the name forever. After d the
// contexts of the lock end with [ErrMaxHold], and then the lock is released without waiting for its Unlock, which
// returns ErrMaxHold. So another client may hold the name while the work is still running: work that does not stop when
// its context ends needs the token. [WithMinHold] keeps the name for the rest of its time. A release that does not
// reach a master is resent in the background, as after an Unlock. 0, the default, means no bound.
func WithMaxHold(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.MaxHold = d })
}

// WithHoldWarning sets after which time a held lock without [WithMaxHold] is logged once as a warning, because its
// Unlock may be missing. The default is ten minutes; 0 and negative values turn the warning off. The warning comes with
// an extension, so up to a third of the TTL later, and never for a lock without background extension or of
// [Locker.Lead].
func WithHoldWarning(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.HoldWarning = d })
}

// WithMinHold keeps the name locked for at least d from the moment at which the masters granted the lock, for jobs that
// must not run again too soon. An earlier Unlock or Close ends the hold, but the name stays unavailable to others until
// d has passed. The masters enforce d without the client, which may exit or be killed. [Locker.Inspect] reports such a
// name as Kept.
//
// The masters keep the name for d and the drift of d (1 % and 2 ms), which together must not exceed the max TTL. If d
// is longer than the TTL, that sum is the TTL with which the lock is acquired. A master that the Unlock does not reach
// keeps the name until its TTL has expired. The call waits as with [WithFair], and the lock is not handed off. An
// exported lock has the minimum hold of its Import. 0, the default, means no minimum.
func WithMinHold(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.MinHold = d })
}

// WithAsyncUnlock makes Unlock return without waiting for the masters: the lock has ended, and its release is queued on
// the connections to all masters that are up. A Lock and its Unlock then wait for one round trip instead of two.
//
// Such an Unlock returns nil, ErrLost or ErrReleased, which need no reply. Other clients may find the name held for
// about one round trip longer. A release that does not reach a master is resent in the background, as after an Unlock
// that waits. [Locker.Close] waits for all queued releases.
func WithAsyncUnlock() LockOption { return ofLock(func(s *client.Settings) { s.Async = true }) }

// WithLinger keeps the lock with this Locker for up to d after the last Unlock. The next Lock or TryLock of the name by
// this Locker takes the lock over with the next token, immediately; it sends an extension if one is due, and does
// not wait for it. A lingering lock is not extended, so it is kept no longer than its validity. When another client
// tries to acquire the name, the masters notify this Locker, which releases the lock immediately or, if the lock is in
// use, at the next Unlock. 0, the default, releases the lock at its Unlock.
//
// Another client waits for a lingering lock up to two round trips longer than for a free name. If the notification is
// lost, the other client tries again after a second or more, and the lingering lock is released at the latest when its
// validity ends. If the client of the lingering lock is frozen or dies, others wait until the TTL has expired,
// as for any lock. A lock whose Lock call had to wait for another client does not linger, since more clients may wait.
// A TryLock that is refused because of a lock that may be lingering tries again, for half a second or [WithWaitLimit].
// So WithLinger suits names that one client locks many times in a row.
//
// A lock lingers only if all of these are true: it has tokens left (100 000 for each acquire from the masters); no call
// of this Locker waits for the name; this client is subscribed to its inbox on a quorum of masters; and fewer than 1000
// locks of its shard linger. Locks with a minimum hold, and those of [Locker.RWLock] and [Locker.LockAll], do not
// linger. [Locker.Shutdown] and [Locker.Close] release lingering locks.
func WithLinger(d time.Duration) LockOption { return ofLock(func(s *client.Settings) { s.Linger = d }) }

// WithExtension turns the background extension of held locks on or off; the default is on. Without it, a lock ends with
// its first validity unless [Lock.Extend] is called.
func WithExtension(on bool) LockOption { return ofLock(func(s *client.Settings) { s.Extend = on }) }

// WithFair orders a call among the calls of all Lockers: its lock is neither obtained by a local hand-off nor handed
// off. Waiters are ordered by the time of their call on the masters' clocks. The order is best effort, because each
// master has its own queue. Without WithFair, consecutive holders may be calls of one Locker, at most 32 times and for
// at most 100 ms.
//
// WithFair cannot be combined with [WithTries], whose calls do not wait in the queues.
func WithFair() LockOption { return ofLock(func(s *client.Settings) { s.Fair = true }) }

// WithPriority implies [WithFair]. It puts the call before all waiters of a lower priority and behind those of a higher
// priority. n is from -1000 to 1000; the default is 0.
func WithPriority(n int) LockOption {
	return ofLock(func(s *client.Settings) { s.Fair, s.Priority = true, n })
}

// WithReentry lets a call whose context owns the name ([Lock.Context], or the context of the function of [Locker.Do])
// re-enter the lock that the context owns. Without this option such a call fails with [ErrReentry]. Programs in which
// each call may run inside another one with the same name pass the option to [New].
//
// A re-entry does not wait for the lock, since the context holds it. It is one round to the masters, which extends the
// lock by the TTL of the call, and needs a quorum as an extension does. It returns a separate [Lock], with the token of
// the first one. The lock is released by the last Unlock; each Lock needs its own. When the lock is lost, all of them
// end. Of the options of a re-entry only the TTL, the tries and the limits of the wait apply: extension, maximum and
// minimum hold and linger stay those of the first call.
//
// Re-entries exclude nothing. Goroutines that re-enter one lock hold it together, at the same time: if they must
// exclude each other, they must not share the context of the lock. A context re-enters only locks of the Locker that
// made them.
//
// For an [RWLock], a context that owns the writer's lock re-enters it as a writer or as a reader, and one that owns a
// reader's lock as a reader. A reader cannot become the writer, since it would wait for its own lock: that call returns
// ErrInvalid. [Locker.LockAll] re-enters those names that the context owns, and a [Semaphore] the slot that the context
// owns. While a lock is held more than once, [Lock.Export] and [Lock.Downgrade] return ErrInvalid.
func WithReentry() LockOption { return ofLock(func(s *client.Settings) { s.Reentry = true }) }

// WithPrefix sets the key prefix. Lockers with different prefixes are independent: each prefix is a deployment with its
// own max TTL. The default is "redlock". A prefix must not contain braces or end with a colon, since the keys add both.
func WithPrefix(prefix string) Option { return ofLocker(func(c *client.Config) { c.Prefix = prefix }) }

// WithPool sets how [Open] and [OpenSharded] reach the masters: credentials, TLS, timeouts, the dialer. [New] and
// [NewSharded], which are given a pool, refuse it.
func WithPool(opts ...pool.Option) Option {
	return ofLocker(func(c *client.Config) {
		if c.Transport == nil {
			c.Transport = []transport.Option{} // New refuses the option, also without an argument
		}
		for _, o := range opts {
			c.Transport = append(c.Transport, o)
		}
	})
}

// poolOptions returns the options of [WithPool].
func poolOptions(c *client.Config) (opts []pool.Option) {
	for _, o := range c.Transport {
		opts = append(opts, o)
	}
	return opts
}

// WithMaxTTL sets the max TTL: the longest TTL that any client of the deployment may use. A master that was restarted
// does not vote for this time, and for at least 30 s, unless [WithDurableMasters] lists it. The max TTL belongs to the
// deployment and is recorded on the masters; a recorded value takes precedence over g. Give all clients the same value.
// If clients start a deployment with different values, the value that a majority of the masters has recorded applies.
// Admin.RaiseMaxTTL of package admin raises it while clients run. g is from 10 ms to 24 hours; the default is 30 s. A
// max TTL below 10 s needs a [WithTTL], too, since the default TTL is 10 s.
func WithMaxTTL(g time.Duration) Option {
	return ofLocker(func(c *client.Config) { c.MaxTTL, c.Unguarded = g, false })
}

// WithoutRestartGuard turns the restart guard off: a master that restarts empty votes immediately, and then two clients
// may hold a name at the same time. Use it only with masters that never lose data, such as masters that fsync every
// write. Use it for all clients of a prefix or for none: a client without the guard ignores the max TTL of the
// deployment and the epoch of its [Configuration]. The parameter guard=off in the URLs of all masters has the same
// effect.
//
// When masters have restarted, a held lock continues, and its background extension is sent immediately to find out
// whether the masters still have the lock. With [WithExtension](false) nothing is sent. Then, if the masters have lost
// the lock, its Err stays nil until the validity ends, and another client may hold the name; only [Lock.Extend] and
// [Lock.SetValue] return [ErrLost]. Leave the background extension on, or call Extend before each step that needs the
// lock.
func WithoutRestartGuard() Option {
	return ofLocker(func(c *client.Config) { c.MaxTTL, c.Unguarded = 0, true })
}

// WithTrace adds trace callbacks to those of earlier WithTraces. Those of several Traces are called one after the
// other. Without any, the default, each event costs one nil check.
func WithTrace(t ...*redlockinfo.Trace) Option {
	return ofLocker(func(c *client.Config) {
		for _, one := range t {
			addTrace(c, one)
		}
	})
}

// WithLabel sets a label for people. Inspections show it, as do the errors of clients that find the name held. The
// label does not identify a client: the masters know each Locker by a UUID, so two Lockers with the same label are two
// owners. The default is the host name and the process id. A label has at most 64 bytes and no control characters.
func WithLabel(label string) Option { return ofLocker(func(c *client.Config) { c.Label = label }) }

// WithDurableMasters declares masters durable: they never lose a write that they have acknowledged. first and more are
// names that [pool.Pool.Addr] returns. A durable master that restarts with its data votes immediately, and its locks
// stay valid. If it restarts empty, or with the data of another server, it goes through a quarantine. Other masters do
// so after each restart, even if they have kept their data.
//
// The caller asserts three things. The masters have the settings appendonly yes, appendfsync always and
// no-appendfsync-on-rewrite no, on a disk that keeps synced data. They have no replicas. None is ever started from an
// old copy of its data; an append-only file is old if the server has since run with appendonly no. If one of these is
// false, names that are still held can be granted again. To start a durable master from an old copy, start it
// unreachable for clients, delete its admission record (the key is the prefix and ":admission"), and only then make it
// reachable; it goes through a quarantine like a new master.
//
// A master whose machine starts with a clock that is ahead, until it is set, goes through a quarantine: keys may have
// expired. A Locker knows that from the uptime of the server, as long as the server has not run for longer than the
// clock was ahead.
//
// The Locker reads the settings, the last two with the right to CONFIG GET, and logs one warning about masters that
// contradict and one about masters whose settings cannot be read. A master that contradicts is treated like any other
// master. A master whose settings cannot be read is believed.
//
// If the settings are changed while a master runs as a durable one, it has no vote, and its leases do not count, until
// they are corrected: it would be believed after a restart, but has forgotten the locks since the change. That is so
// for every client, also for one without the option, as long as the record calls the master durable. Before you change
// the settings, leave it out of the durable masters of all clients, and then replace its record by Admin.Quarantine of
// package admin. The Locker notices appendonly no at the next heartbeat (3 s), and the other two settings at the
// fourth. If the master crashes before that, and starts again with its old file, locks granted or extended since the
// change can be granted again. The same is true while the file is rewritten after appendonly has been switched on
// again, for a Locker that connects only then.
//
// Use this option in all clients of the deployment, with the same names. A client without the option, or with
// another name of the master, starts a quarantine of the master, and then all clients wait. A name that no master
// has is logged as a warning. An empty name is invalid.
func WithDurableMasters(first string, more ...string) Option {
	names := append([]string{first}, more...)
	return ofLocker(func(c *client.Config) { c.Durable, c.AllDurable = names, false })
}

// WithAllMastersDurable is [WithDurableMasters] for all masters.
func WithAllMastersDurable() Option {
	return ofLocker(func(c *client.Config) { c.Durable, c.AllDurable = nil, true })
}

// WithTries makes a call poll for at most n attempts, with growing pauses of 10 to 270 ms, instead of waiting in the
// queues of this Locker and of the masters. The call may never acquire a name for which other clients wait. 0, the
// default, sets no limit: the call waits in the queues, and is woken when the name is free. The option has no effect on
// TryLock, TryDo, TryRLock and TryLockAll, which do not wait for a holder.
func WithTries(n int) LockOption { return ofLock(func(s *client.Settings) { s.Tries = n }) }

// WithWaitLimit limits how long a call waits for the lock, independently of the context of the work. When d has passed,
// the call fails with [ErrHeld] if other clients have the name, or with [ErrNoQuorum] if too few masters have answered,
// but not with context.DeadlineExceeded. d must be positive. Without the option only the context limits the wait.
// TryLock and calls with [WithTries] do not queue behind another holder: for a TryLock, d limits how long it waits for
// answers, and how long it repeats attempts while the votes are split (by default half a second). [Locker.Lead] ignores
// the limit. [WithQuorumWait] sets a shorter limit for outages.
func WithWaitLimit(d time.Duration) LockOption {
	if d == 0 {
		d = -1 // check refuses it: a computed limit of 0 must not mean "forever"
	}
	return ofLock(func(s *client.Settings) { s.WaitLimit = d })
}

// WithQuorumWait limits how long a call waits while no quorum of masters can grant a lock. When that has lasted for d,
// counted from the beginning of the call at the earliest, the call fails with [ErrNoQuorum] and the reason of each
// master. So in an outage a call fails after d, while behind another holder it may wait for [WithWaitLimit], or until
// its context ends. An outage that begins while the call waits behind a holder counts too. 0, the default, means no
// limit. [Locker.Lead] ignores it.
//
// A master that does not answer counts as down only after the timeout of the pool ([pool.WithTimeout]), which adds to
// d. A new Locker has no quorum until it is connected, so d should be longer than the dial timeout. A master that has
// refused a call is tried again after 5 s or by the next call that it grants, so a shorter d may also end a call during
// a shorter outage.
func WithQuorumWait(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.QuorumWait = d })
}

// WithLogger sets the logger for operational messages; the default is [slog.Default] at the time of [New]. At level
// Warn the Locker logs risks of the configuration, masters that grant no locks, and lost locks. If no lock can be
// acquired for a second, it logs a warning with the reason of each master, and repeats it after pauses of two seconds,
// four, and so on up to a minute. It logs one warning for a lock that has been held for ten minutes ([WithHoldWarning])
// without [WithMaxHold], except by [Locker.Lead]. It logs one warning for a call that has waited for a second, with a
// context that never ends, for a lock of its own Locker. It logs one warning a second about all releases that were not
// confirmed. At level Info it logs that a master grants locks again, that locks can be acquired again, that a lock has
// reached its max hold, and once that there is only one master. A master that is back within a second is not logged.
//
// The message of a record is constant, and its attributes are data: label ([WithLabel]), master, state, reason, lock,
// token, and times in seconds (left, held, for). The attribute hint contains advice. No record contains a password.
// Records pass through the event queue of the Locker (see [redlockinfo.Trace]) with their original times: a handler
// that blocks or panics delays or loses records, but never a lock. slog.DiscardHandler turns the log off.
func WithLogger(log *slog.Logger) Option { return ofLocker(func(c *client.Config) { c.Log = log }) }

package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/monitor"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/waitqueue"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Bounds and defaults of the options.
const (
	minTTL = 10 * time.Millisecond // a smaller TTL would be used up by the drift and a single round trip
	maxTTL = 24 * time.Hour        // also the limit of the max TTL

	defaultHandoffs    = 32
	defaultHandoffTime = 100 * time.Millisecond
	defaultHoldWarning = 10 * time.Minute

	// A TryLock waits this many timeouts of the pool for the limit of concurrent attempts. With fewer timeouts, callers
	// that fail and immediately try again would use the processor time of callers that acquire locks.
	turnTimeouts = 10
)

// Upper bounds of the limits of local hand-offs. Each hand-off puts the fence one microsecond further ahead of the
// clock. The documentation of internal/lease shows the cost; the masters would accept more hand-offs.
const (
	mostHandoffs    = 1000
	mostHandoffTime = time.Minute
)

// An Option configures a [Locker]. [New] checks the options and returns [ErrInvalid] if one is out of range.
type Option interface{ applyLocker(*config) }

// A LockOption configures one call or, if passed to [New], all calls of the Locker. A call checks its options before it
// sends anything.
type LockOption interface {
	Option
	applyLock(*lockConfig)
}

// config holds the settings of a Locker.
type config struct {
	lock     lockConfig // defaults of all calls
	prefix   string
	guard    time.Duration // 0: off
	noGuard  bool
	clock    *clock.Clock
	trace    *redlockinfo.Trace
	log      *slog.Logger
	label    string
	durable  func(addr string) bool // reports whether a master is declared durable; nil if none is
	named    []string               // the names given to WithDurableMasters
	observer bool
	sets     []Configuration // indexed by shard
	set      *Configuration  // initial configuration of this shard; nil: the masters of the pool
	layout   scripts.Shard
	shards   *monitor.Shards // shared by the shards of the Locker
	pool     []pool.Option   // for Open
}

// lockConfig holds the settings of one call.
type lockConfig struct {
	lease.Terms
	minValidity time.Duration                 // 0: half of the TTL
	poll        func(retry int) time.Duration // pause before a retry (from 1) of a call that receives no wake-ups
	waitLimit   time.Duration                 // 0: none
	quorumWait  time.Duration                 // 0: no limit
	tries       int                           // 0: no limit
	fair        bool
	priority    int
	reentry     bool          // whether a context that owns the name re-enters its lock
	once        bool          // whether a call that does not wait makes only one attempt
	slot        bool          // whether the name is that of a slot, which the Semaphore has checked
	called      clock.Instant // start of the call; zero: now
}

// configOf returns the settings of a call with these options for a name and a role.
func (l *shard) configOf(name string, role scripts.Role, opts []LockOption) (*lockConfig, error) {
	cfg, err := l.cfg.lock.with(opts, &l.cfg)
	if err == nil && !cfg.slot {
		err = l.checkName(name)
	}
	if err == nil && role != scripts.Plain {
		cfg, err = cfg.shared()
	}
	return cfg, err
}

// remembers reports whether the master at addr is declared durable.
func (c *config) remembers(addr string) bool { return c.durable != nil && c.durable(addr) }

// labelOfProcess returns the default label of a process: the host name, truncated if necessary, and the process id.
func labelOfProcess(host string, pid int) string {
	suffix := fmt.Sprintf("/%d", pid)
	host = host[:min(len(host), scripts.MaxLabel-len(suffix))]
	if host == "" || scripts.CheckLabel(host) != nil {
		host = "unknown"
	}
	return host + suffix
}

func defaultConfig() config {
	host, _ := os.Hostname()
	return config{
		lock: lockConfig{poll: defaultPause, Terms: lease.Terms{
			TTL: private.DefaultTTL, Extend: true, Handoffs: defaultHandoffs, HandoffTime: defaultHandoffTime,
			HoldWarning: defaultHoldWarning,
		}},
		prefix: private.DefaultPrefix,
		guard:  private.DefaultMaxTTL,
		trace:  &redlockinfo.Trace{},
		log:    slog.Default(),
		label:  labelOfProcess(host, os.Getpid()),
	}
}

type lockerOption func(*config)

func (f lockerOption) applyLocker(c *config) { f(c) }

type lockOption func(*lockConfig)

func (f lockOption) applyLocker(c *config)   { f(&c.lock) }
func (f lockOption) applyLock(c *lockConfig) { f(c) }

// WithTTL sets how long the masters keep the lock after an acquire or an extension: from 10 ms to the max TTL or,
// without the restart guard, to 24 hours. The default is 10 s. The TTL is rounded up to whole milliseconds for the
// masters; the holder does not use the added fraction. A held lock is extended every third of the TTL. So the TTL
// bounds how long the name stays locked after its holder dies, not how long a lock may be held.
func WithTTL(ttl time.Duration) LockOption { return lockOption(func(c *lockConfig) { c.TTL = ttl }) }

// WithMaxHold bounds how long a lock is held, so that a worker that hangs does not keep the name forever. After d the
// contexts of the lock end with [ErrMaxHold], and then the lock is released without waiting for its Unlock, which
// returns ErrMaxHold. So another client may hold the name while the work is still running: work that does not stop when
// its context ends needs the token. [WithMinHold] keeps the name for the rest of its time. A release that does not
// reach a master is resent in the background, as after an Unlock. 0, the default, means no bound.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.MaxHold = d })
}

// WithHoldWarning sets after which time a held lock without [WithMaxHold] is logged once as a warning, because its
// Unlock may be missing. The default is ten minutes; 0 and negative values turn the warning off. The warning comes with
// an extension, so up to a third of the TTL later, and never for a lock without background extension or of
// [Locker.Lead].
func WithHoldWarning(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.HoldWarning = d })
}

// WithMinHold keeps the name locked for at least d from the moment at which the masters granted the lock, for jobs that
// must not run again too soon. An earlier Unlock or Close ends the hold, but the name stays unavailable to others until
// d has passed. The masters enforce d without the client, which may exit or be killed. [Locker.Inspect] reports such a
// name as Kept.
//
// The masters keep the name for d and the drift of d (1 % and 2 ms), which together must not exceed the max TTL. If d
// is longer than the TTL, the lock is acquired with d as its TTL. A master that the Unlock does not reach keeps the
// name until its TTL has expired. The call waits as with [WithFair], and the lock is not handed off. An exported
// lock has the minimum hold of its Import. 0, the default, means no minimum.
func WithMinHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.MinHold = d })
}

// WithAsyncUnlock makes Unlock return without waiting for the masters: the lock has ended, and its release is queued on
// the connections to all masters that are up. A Lock and its Unlock then wait for one round trip instead of two.
//
// Such an Unlock returns nil, ErrLost or ErrReleased, which need no reply. Other clients may find the name held for
// about one round trip longer. A release that does not reach a master is resent in the background, as after an Unlock
// that waits. [Locker.Close] waits for all queued releases.
func WithAsyncUnlock() LockOption { return lockOption(func(c *lockConfig) { c.Async = true }) }

// WithLinger keeps the lock with this Locker for up to d after the last Unlock. The next Lock or TryLock of the name by
// this Locker takes the lock over with the next token, immediately and without a message to the masters. A lingering
// lock is not extended, so it is kept no longer than its validity. When another client tries to acquire the name, the
// masters notify this Locker, which releases the lock immediately or, if the lock is in use, at the next Unlock. 0, the
// default, releases the lock at its Unlock.
//
// Another client waits for a lingering lock up to two round trips longer than for a free name. If the notification is
// lost, the other client tries again after a second or more, and the lingering lock is released at the latest one TTL
// after it was acquired. If the client of the lingering lock is frozen or dies, others wait until the TTL has expired,
// as for any lock. A lock whose Lock call had to wait for another client does not linger, since more clients may wait.
// A TryLock that is refused because of a lock that may be lingering tries again, for half a second or [WithWaitLimit].
// So WithLinger suits names that one client locks many times in a row.
//
// A lock lingers only if all of these are true: it has tokens left (100 000 for each acquire from the masters); no call
// of this Locker waits for the name; this client is subscribed to its inbox on a quorum of masters; and fewer than 1000
// locks of this Locker linger. Locks with a minimum hold, and those of [Locker.RWLock] and [Locker.LockAll], do not
// linger. [Locker.Shutdown] and [Locker.Close] release lingering locks.
func WithLinger(d time.Duration) LockOption { return lockOption(func(c *lockConfig) { c.Linger = d }) }

// WithExtension turns the background extension of held locks on or off; the default is on. Without it, a lock ends with
// its first validity unless [Lock.Extend] is called.
func WithExtension(on bool) LockOption { return lockOption(func(c *lockConfig) { c.Extend = on }) }

// WithFair orders a call among the calls of all Lockers: its lock is neither obtained by a local hand-off nor handed
// off. Waiters are ordered by the time of their call on the masters' clocks. The order is best effort, because each
// master has its own queue. Without WithFair, consecutive holders may be calls of one Locker, at most 32 times and for
// at most 100 ms.
//
// WithFair cannot be combined with [WithTries], whose calls do not wait in the queues.
func WithFair() LockOption { return lockOption(func(c *lockConfig) { c.fair = true }) }

// WithPriority implies [WithFair]. It puts the call before all waiters of a lower priority and behind those of a higher
// priority. n is from -1000 to 1000; the default is 0.
func WithPriority(n int) LockOption {
	return lockOption(func(c *lockConfig) { c.fair, c.priority = true, n })
}

// WithReentry lets a call whose context owns the name ([Lock.Context], or the context of the function of [Locker.Do])
// re-enter the lock that the context owns. Without this option such a call fails with [ErrReentry]. Programs in which
// each call may run inside another one with the same name pass the option to [New].
//
// A re-entry does not wait for the lock, since the context holds it. It is one round to the masters, which extends the
// lock by the TTL of the call, and needs a quorum as an extension does. It returns a separate [Lock], with the token of
// the first one. The lock is released by the last Unlock; each Lock needs its own. When the lock is lost, all of them
// end. Of the options of a re-entry only the TTL, the retries and the wait limit apply: extension, maximum and minimum
// hold and linger stay those of the first call.
//
// Re-entries exclude nothing. Goroutines that re-enter one lock hold it together, at the same time: if they must
// exclude each other, they must not share the context of the lock. A context re-enters only locks of the Locker that
// made them.
//
// For an [RWLock], a context that owns the writer's lock re-enters it as a writer or as a reader, and one that owns a
// reader's lock as a reader. A reader cannot become the writer, since it would wait for its own lock: that call returns
// ErrInvalid. [Locker.LockAll] re-enters those names that the context owns, and a [Semaphore] the slot that the context
// owns. While a lock is held more than once, [Lock.Export] and [Lock.Downgrade] return ErrInvalid.
func WithReentry() LockOption { return lockOption(func(c *lockConfig) { c.reentry = true }) }

// WithPrefix sets the key prefix. Lockers with different prefixes are independent: each prefix is a deployment with its
// own max TTL. The default is "redlock". A prefix must not contain braces or end with a colon, since the keys add both.
func WithPrefix(prefix string) Option { return lockerOption(func(c *config) { c.prefix = prefix }) }

// WithPool sets how [Open] and [OpenSharded] reach the masters: credentials, TLS, timeouts, the dialer. [New] and
// [NewSharded], which are given a pool, refuse it.
func WithPool(opts ...pool.Option) Option {
	return lockerOption(func(c *config) { c.pool = append(c.pool, opts...) })
}

// WithMaxTTL sets the max TTL: the longest TTL that any client of the deployment may use. A master that was restarted
// does not vote for this time, and for at least 30 s, unless [WithDurableMasters] lists it. The max TTL belongs to the
// deployment and is recorded on the masters; a recorded value takes precedence over g. Give all clients the same value.
// If clients start a deployment with different values, the value that a majority of the masters has recorded applies.
// [Admin.RaiseMaxTTL] raises it while clients run. g is from 10 ms to 24 hours; the default is 30 s.
func WithMaxTTL(g time.Duration) Option {
	return lockerOption(func(c *config) { c.guard, c.noGuard = g, false })
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
	return lockerOption(func(c *config) { c.guard, c.noGuard = 0, true })
}

// WithTrace registers trace callbacks. Those of several Traces are called one after the other. Without any, the
// default, each event costs one nil check.
func WithTrace(t ...*redlockinfo.Trace) Option {
	return lockerOption(func(c *config) { c.trace = join(t) })
}

// WithLabel sets a label for people. Inspections show it, as do the errors of clients that find the name held. The
// label does not identify a client: the masters know each Locker by a UUID, so two Lockers with the same label are two
// owners. The default is the host name and the process id. A label has at most 64 bytes and no control characters.
func WithLabel(label string) Option { return lockerOption(func(c *config) { c.label = label }) }

// configure applies the options of a Locker to the defaults.
func configure(opts []Option) (*config, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		if o == nil {
			return nil, invalid("an option is nil")
		}
		o.applyLocker(&cfg)
	}
	return &cfg, nil
}

// hidden is an Option that applies the settings of tools and tests.
type hidden private.Settings

func (h hidden) applyLocker(c *config) {
	if h.Clock != nil {
		c.clock = h.Clock
	}
	if h.Shards > 0 {
		c.layout = scripts.Shard{Number: h.Shard, Of: h.Shards}
	}
	c.observer = c.observer || h.Observer
	h.applyLock(&c.lock)
}

func (h hidden) applyLock(c *lockConfig) {
	if h.MinValidity != 0 {
		c.minValidity = h.MinValidity
	}
	if h.Poll != nil {
		c.poll, c.tries = h.Poll, math.MaxInt
	}
	if h.Handoffs != nil {
		c.Handoffs, c.HandoffTime = int32(h.Handoffs.Most), h.Handoffs.Within
	}
}

// check validates the options of New.
func (c *config) check() error {
	for _, err := range []error{scripts.CheckPrefix(c.prefix), scripts.CheckLabel(c.label)} {
		if err != nil {
			return invalid("%w", err)
		}
	}
	if c.log == nil {
		return invalid("WithLogger(nil): to log nothing, use slog.New(slog.DiscardHandler)")
	}
	if slices.Contains(c.named, "") {
		return invalid("the name of a durable master is empty: give names, or WithAllMastersDurable, or neither")
	}
	if c.layout != (scripts.Shard{}) {
		if err := sharding.Check(c.layout); err != nil {
			return invalid("%w", err)
		}
	}
	if !c.noGuard && (c.guard < minTTL || c.guard > maxTTL) {
		return invalid("max TTL %v: must be from %v to %v; WithoutRestartGuard turns the guard off", c.guard, minTTL, maxTTL)
	}
	return c.lock.check(c)
}

// check validates the settings of one call, and sets the settings that depend on others.
func (c *lockConfig) check(l *config) error {
	c.Least = cmp.Or(c.minValidity, c.TTL/2)
	drift, longest := lease.Drift(c.TTL), cmp.Or(l.guard, maxTTL)
	switch {
	case l.guard > 0 && c.TTL > l.guard:
		text := fmt.Sprintf("TTL %v is above the max TTL %v: a held lock is extended in the background, so it needs no long "+
			"TTL: leave WithTTL out", c.TTL, l.guard)
		if c.TTL <= maxTTL {
			text += fmt.Sprintf("; only if the name must stay locked for %v after its holder has died, raise the max TTL of "+
				"the masters (redlock max-ttl --set %v URL...), then WithMaxTTL of all clients", c.TTL, c.TTL)
		}
		return invalid("%s", text)
	case c.TTL < minTTL || c.TTL > maxTTL:
		return invalid("TTL %v: must be from %v to %v", c.TTL, minTTL, longest)
	case c.Least < 0 || c.Least > c.TTL-drift:
		return invalid("minimum validity %v: a TTL of %v leaves at most %v after a drift of %v",
			c.Least, c.TTL, c.TTL-drift, drift)
	case c.MinHold < 0:
		return invalid("minimum hold %v is negative; 0 means none", c.MinHold)
	case c.MinHold > longest || c.MinHold+lease.Drift(c.MinHold) > longest: // checked first, since the sum may overflow
		return invalid("minimum hold %v and its drift of %v are above %v, the longest time for which masters keep a name: "+
			"the max TTL, or %v without the guard", c.MinHold, lease.Drift(c.MinHold), longest, maxTTL)
	case c.Linger < 0:
		return invalid("linger %v is negative; 0 releases the lock at its Unlock", c.Linger)
	case c.MaxHold < 0:
		return invalid("maximum hold %v is negative; 0 means no limit", c.MaxHold)
	case c.waitLimit < 0:
		return invalid("a wait limit must be positive; without WithWaitLimit the context limits the wait, and TryLock " +
			"does not wait for a holder")
	case c.quorumWait < 0:
		return invalid("quorum wait %v is negative; 0 means no limit", c.quorumWait)
	case c.tries < 0:
		return invalid("%d tries: must be at least 0; 0 means until the context ends", c.tries)
	case c.Handoffs < 0 || c.Handoffs > mostHandoffs || c.HandoffTime < 0 || c.HandoffTime > mostHandoffTime:
		return invalid("%d local hand-offs within %v: the limits are %d and %v; 0 turns them off",
			c.Handoffs, c.HandoffTime, mostHandoffs, mostHandoffTime)
	case c.fair && c.bounded():
		return invalid("a fair call waits in the queues until its context ends: " +
			"WithFair and WithPriority exclude WithTries")
	case c.priority < -1000 || c.priority > 1000:
		return invalid("priority %d: must be from -1000 to 1000", c.priority)
	}
	if c.fair {
		c.Handoffs = 0
	}
	if c.MinHold > 0 {
		c.Linger = 0
	}
	return nil
}

// bounded reports whether the call has a limit of tries. Such a call does not wait in the queues.
func (c *lockConfig) bounded() bool { return c.tries > 0 }

// with returns a copy of c to which opts are applied. Without opts it returns c itself, so callers must not modify the
// result.
func (c *lockConfig) with(opts []LockOption, l *config) (*lockConfig, error) {
	if len(opts) == 0 {
		return c, nil // checked by New
	}
	changed := *c
	for _, o := range opts {
		if o == nil {
			return nil, invalid("an option is nil")
		}
		o.applyLock(&changed)
	}
	return &changed, changed.check(l)
}

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
// The Locker reads the settings, the last two with the right to CONFIG GET, and logs one warning about masters that
// contradict and one about masters whose settings cannot be read. A master that contradicts is treated like any other
// master. A master whose settings cannot be read is believed.
//
// If the settings are changed while a master runs as a durable one, it has no vote, and its leases do not count, until
// they are corrected: it would be believed after a restart, but has forgotten the locks since the change. Leave it out
// of the durable masters of all clients before you change the settings. The Locker notices appendonly no at the next
// heartbeat (3 s), and the other two settings at the fourth. If the master crashes before that,
// and starts again with its old file, locks granted or extended since the change can be granted again. The same is true
// while the file is rewritten after appendonly has been switched on again, for a Locker that connects only then.
//
// Use this option in all clients of the deployment, with the same names. A client without the option, or with
// another name of the master, starts a quarantine of the master, and then all clients wait. A name that no master
// has is logged as a warning. An empty name is invalid.
func WithDurableMasters(first string, more ...string) Option {
	names := append([]string{first}, more...)
	return lockerOption(func(c *config) {
		c.named, c.durable = names, func(addr string) bool { return slices.Contains(names, addr) }
	})
}

// WithAllMastersDurable is [WithDurableMasters] for all masters.
func WithAllMastersDurable() Option {
	return lockerOption(func(c *config) { c.named, c.durable = nil, func(string) bool { return true } })
}

// A warning is a sentence about settings that are valid but risky, and the level at which it is logged.
type warning struct {
	level slog.Level
	text  string
}

// configWarnings returns warnings about the settings with these masters. One master is a choice, so it is only noted.
func configWarnings(c *config, first *quorum.Config, p *transport.Transport) (warnings []warning) {
	log := func(level slog.Level, format string, args ...any) {
		warnings = append(warnings, warning{level, fmt.Sprintf("redlock: "+format, args...)})
	}
	add := func(format string, args ...any) { log(slog.LevelWarn, format, args...) }
	for _, set := range first.Rule.Sets() { // while the masters are changed, there are two sets
		switch n := set.Len(); {
		case n == 1 && slices.ContainsFunc(first.Order, p.FailsOver):
			add("one master with failover: after each failover no lock can be acquired until the max TTL has passed")
		case n == 1:
			wait := ""
			if addr := p.Addr(first.Order[0]); c.guard > 0 && !c.remembers(addr) {
				wait = fmt.Sprintf("; after a restart it grants no locks for %v, unless WithDurableMasters names it, which needs "+
					"appendonly yes, appendfsync always and no-appendfsync-on-rewrite no", max(c.guard, admission.Shortest))
			}
			log(slog.LevelInfo, "one master: locks are as safe as that one server%s", wait)
		case n%2 == 0:
			add("%d masters survive the loss of %d, as %d would; use an odd number", n, (n-1)/2, n-1)
		}
	}
	if c.guard == 0 && len(first.Order) > 1 {
		add("the restart guard is off: a master that restarts empty can grant a held lock again")
	}
	for _, text := range p.Warnings() {
		warnings = append(warnings, warning{slog.LevelWarn, text})
	}
	return warnings
}

// WithTries makes a call poll for at most n attempts, with growing pauses of 10 to 270 ms, instead of waiting in the
// queues of this Locker and of the masters. The call may never acquire a name for which other clients wait. 0, the
// default, sets no limit: the call waits in the queues, and is woken when the name is free.
func WithTries(n int) LockOption { return lockOption(func(c *lockConfig) { c.tries = n }) }

// Default pauses before a retry.
const (
	shortestPause = 10 * time.Millisecond // before the first retry; each later pause is longer by half
	longestPause  = 250 * time.Millisecond
	randomPause   = 20 * time.Millisecond // each pause is longer by a random part of this
)

// defaultPause returns the pause before retry n (from 1).
func defaultPause(n int) time.Duration {
	growing := min(float64(shortestPause)*math.Pow(1.5, float64(n-1)), float64(longestPause))
	return time.Duration(growing + jitter.Float64()*float64(randomPause))
}

// repeat calls try until try succeeds, ctx ends, or the tries are used up. If once is true, it calls try only once.
func (l *shard) repeat(ctx context.Context, op, name string, cfg *lockConfig, once bool, try func() error) error {
	var last error
	for n := 1; ; n++ {
		changed := l.voters.Changed()
		err := waitqueue.WithLastFailure(last, try())
		last = err
		if err == nil || once || n == cfg.tries || !round.Waitable(err) {
			return failed(op, name, err)
		}
		delay := cfg.poll(n)
		if view := l.voters.View(); view.Config.Rule.Won(view.Voting) {
			changed = nil // a quorum votes, so wait for the full pause
		}
		select {
		case <-time.After(delay):
			continue
		case <-changed:
			continue
		case <-ctx.Done():
			err = contextError(ctx)
		case <-l.closing:
			err = errClosed
		}
		if f, ok := round.AsFailure(last); ok { // add the reason why the call does not try again
			err = f.Ended(err)
		}
		return failed(op, name, err)
	}
}

// WithWaitLimit limits how long a call waits for the lock, independently of the context of the work. When d has passed,
// the call fails with [ErrHeld] if another client holds the name, or with [ErrNoQuorum] if too few masters have
// answered, but not with context.DeadlineExceeded. d must be positive. Without the option only the context limits the
// wait. TryLock and calls with [WithTries] do not queue behind another holder: for a TryLock, d limits how long it
// waits for answers, and how long it repeats attempts while the votes are split (by default half a second).
// [Locker.Lead] ignores the limit. [WithQuorumWait] sets a shorter limit for outages.
func WithWaitLimit(d time.Duration) LockOption {
	if d == 0 {
		d = -1 // check refuses it: a computed limit of 0 must not mean "forever"
	}
	return lockOption(func(c *lockConfig) { c.waitLimit = d })
}

// errWaited is the cause of a context that ended because the wait limit has expired.
var errWaited = errors.New("the wait limit has expired")

// limited returns ctx with the wait limit of the call, if it has one.
func (c *lockConfig) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.waitLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.waitLimit, errWaited)
}

// waited returns err. If the wait limit ended the call rather than the caller's context, it removes the context error.
func waited(caller, limited context.Context, err error) error {
	var e *LockError
	if !errors.As(err, &e) || e.failure.Cause == nil || caller.Err() != nil ||
		!errors.Is(context.Cause(limited), errWaited) {
		return err
	}
	changed := *e
	if changed.failure.Cause = nil; changed.failure.Decision == nil {
		changed.failure.Decision = ErrNoQuorum
	}
	return &changed
}

// waitReady implements [Locker.WaitReady] for one shard.
func (l *shard) waitReady(ctx context.Context) error {
	if !l.enter() {
		return errClosed
	}
	defer l.leave()
	for {
		view, err := l.voters.Await(ctx, func(v *admission.View) bool { return v.Config.Rule.Won(v.Voting) })
		if err != nil {
			return failed("wait for a quorum of", l.cfg.prefix, l.sender.NoQuorum(view, "vote", err))
		}
		_, _ = l.voters.Await(ctx, (*admission.View).AllKnown) // ignore the error: a quorum votes already
		f := l.unhealthy(ctx)
		if f == nil {
			return nil
		}
		if ended := l.rest(ctx, readyPause); ended != nil {
			return failed("wait for a quorum of", l.cfg.prefix, f.Ended(ended))
		}
	}
}

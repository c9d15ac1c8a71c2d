package redlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/spread"
)

// The bounds and defaults of the options.
const (
	MinTTL = 10 * time.Millisecond // below it the drift and a single network round trip leave nothing
	MaxTTL = 24 * time.Hour        // where the restart guard is off; where it is on, the guard time is the longest TTL

	DefaultTTL        = 10 * time.Second       // see [WithTTL]
	DefaultGuardTime  = 30 * time.Second       // see [WithGuardTime]
	DefaultPrefix     = "redlock"              // see [WithPrefix]
	DefaultHandOns    = 32                     // see [WithHandOn]
	DefaultHandOnTime = 100 * time.Millisecond // see [WithHandOn]
)

// The bounds of [WithHandOn]. Each hand-on is a microsecond by which the fence is ahead of the clock. The masters would
// bear more: "Handing on" in the documentation of internal/grant tells what it costs.
const (
	mostHandOns    = 1000
	mostHandOnTime = time.Minute
)

// An Option sets one thing for a whole [Locker]. Options are checked by [New], which fails with [ErrInvalidOption].
type Option interface{ applyLocker(*config) }

// A LockOption sets one thing for one call, or, given to [New], for all calls of the Locker. It is checked when the
// call begins, before anything is sent.
type LockOption interface {
	Option
	applyLock(*lockConfig)
}

// config is what a Locker was made with.
type config struct {
	lock     lockConfig // the default of its calls
	prefix   string
	drift    clock.Drift
	guard    time.Duration // 0: off
	noGuard  bool
	clock    *clock.Clock
	trace    *Trace
	log      *slog.Logger
	reentry  bool
	label    string
	durable  []string // addresses; nil: none; empty: all
	observer bool
	set      *Set // nil: the masters of the pool
	group    scripts.Group
}

// lockConfig is what one call goes by.
type lockConfig struct {
	grant.Terms
	minValidity time.Duration  // 0: half of the TTL
	backoff     func() Backoff // nil: delays
	delays      Delays
	waitLimit   time.Duration // 0: none
	tries       int           // 0: no bound
	fair        bool
	priority    int
}

// remembers reports whether a master is a durable one.
func (c *config) remembers(addr string) bool {
	return c.durable != nil && (len(c.durable) == 0 || slices.Contains(c.durable, addr))
}

// labelOfProcess is the label of a process: its host, without the end of a name that is too long, and its id.
func labelOfProcess(host string, pid int) string {
	end := fmt.Sprintf("/%d", pid)
	host = host[:min(len(host), scripts.MaxLabel-len(end))]
	if host == "" || scripts.CheckLabel(host) != nil {
		host = "unknown"
	}
	return host + end
}

func defaultConfig() config {
	host, _ := os.Hostname()
	return config{
		lock: lockConfig{delays: DefaultDelays, Terms: grant.Terms{
			TTL: DefaultTTL, Extend: true, HandOns: DefaultHandOns, HandOnTime: DefaultHandOnTime,
		}},
		prefix:  DefaultPrefix,
		drift:   clock.DefaultDrift,
		guard:   DefaultGuardTime,
		trace:   &Trace{},
		log:     slog.Default(),
		label:   labelOfProcess(host, os.Getpid()),
		reentry: true,
	}
}

type lockerOption func(*config)

func (f lockerOption) applyLocker(c *config) { f(c) }

type lockOption func(*lockConfig)

func (f lockOption) applyLocker(c *config)   { f(&c.lock) }
func (f lockOption) applyLock(c *lockConfig) { f(c) }

// WithTTL sets how long the masters keep the lock after an acquire or an extension: from [MinTTL] to the guard time, or
// to [MaxTTL] where the guard is off. The default is [DefaultTTL]. A part of a millisecond is rounded up for the
// masters and not counted for the holder. A lock is extended every third of it, so it bounds how long the name stays
// locked when its holder dies, not how long it may be held.
func WithTTL(ttl time.Duration) LockOption { return lockOption(func(c *lockConfig) { c.TTL = ttl }) }

// WithMinValidity sets how much validity an acquire must have left to count; one that has less is rolled back and is
// [ErrTooSlow]. The default, and the meaning of 0, is half of the TTL.
func WithMinValidity(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.minValidity = d })
}

// WithMaxHold bounds how long a lock is held: then its context ends with [ErrMaxHold], and it is no longer extended, so
// that a worker that hangs does not keep the name for ever. 0, the default, is no bound.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.MaxHold = d })
}

// WithMinHold keeps the name locked for d at least since the masters granted it, for jobs that must not run again too
// soon. An Unlock before that ends the lock as ever, but to others the name stays locked until d is over. The masters
// alone see to that: the program may end, and one that is killed meanwhile frees the name no earlier. [Locker.Who]
// tells such a name as kept. Close keeps it, too.
//
// The masters keep the name for d and the drift of d ([WithDrift]), which together are at most the guard time. If d is
// longer than the TTL, the lock is acquired with d as its TTL. A master that the Unlock does not reach keeps the name
// to the end of its TTL. The call waits as one of [WithFair] does, and the lock is not handed on. A re-entry keeps to
// the minimum of the outermost Lock; an exported lock has that of its Import. 0, the default, is none.
func WithMinHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.MinHold = d })
}

// WithExtension turns the extending of held locks on, which is the default, or off: then a lock ends with its first
// validity unless [Lock.Extend] is called.
func WithExtension(on bool) LockOption { return lockOption(func(c *lockConfig) { c.Extend = on }) }

// WithDelays sets the pauses between the attempts of a call that cannot hear the masters' hints, or whose tries are
// bounded. The default is [DefaultDelays]. A call that hears them asks when it is told, and at least once a second if
// it is first or second in a queue, every five seconds elsewhere.
func WithDelays(d Delays) LockOption {
	return lockOption(func(c *lockConfig) { c.delays, c.backoff = d, nil })
}

// WithHandOn bounds the handing on of a lock: at its Unlock it may pass to the next call of this Locker that waits for
// the name, and is not released. That saves the masters two rounds each time; other programs wait meanwhile. The
// defaults are [DefaultHandOns] and [DefaultHandOnTime]; at most 1000 times, and no longer than a minute.
//
// The number is that of the call that won the lock from the masters: all hand-ons until the release count. The time is
// that of the holder that unlocks: it hands the lock on only if less than this has passed since the masters granted it.
// A call with 0 times does not hand it on; it may still get a lock by handing on. [WithFair] turns both off.
//
// A lock is released although somebody waits here, if the first in line is fair, has a shorter TTL than the lock, or
// wants more validity than is left; and if the lock's token had to be above the masters' time, as it is for a name
// that somebody else has just handed on.
func WithHandOn(times int, atMost time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.HandOns, c.HandOnTime = times, atMost })
}

// WithFair has a call wait its turn among all Lockers: it neither gets nor gives the lock by handing on. Waiters are in
// the order in which they called, by the masters' clocks. The order is best effort: each master keeps it for itself.
// Without it, calls of one Locker may follow each other for a bounded time; see [WithHandOn].
//
// It does not go with a bound of the tries, or WithBackoff: such calls do not wait in the queues.
func WithFair() LockOption { return lockOption(func(c *lockConfig) { c.fair = true }) }

// WithPriority is [WithFair], and puts the call before all waiters of a lower priority, and behind those of a higher
// one. The default is 0; from -1000 to 1000.
func WithPriority(n int) LockOption {
	return lockOption(func(c *lockConfig) { c.fair, c.priority = true, n })
}

// WithTries bounds the attempts of a blocked call, the first one included; 0, the default, is no bound. A call with a
// bound waits in no queue, neither in this Locker nor on the masters: it tries and pauses, and where others wait it may
// not get it.
func WithTries(n int) LockOption { return lockOption(func(c *lockConfig) { c.tries = n }) }

// WithBackoff sets your own policy of retries: start is called once for each call that has to wait, and must not return
// nil. Such a call waits in no queue; see [WithTries].
func WithBackoff(start func() Backoff) LockOption {
	return lockOption(func(c *lockConfig) { c.backoff = start })
}

// WithPrefix sets what the keys begin with. Lockers with different prefixes know nothing of each other, and each prefix
// is a fleet with a guard time of its own. The default is [DefaultPrefix]. Braces, and a colon at the end, are
// refused: the keys add both.
func WithPrefix(prefix string) Option { return lockerOption(func(c *config) { c.prefix = prefix }) }

// WithDrift sets by how much the clocks of this machine and of the masters may differ in rate. The default is
// [clock.DefaultDrift], 1 % of the TTL + 2 ms.
func WithDrift(d clock.Drift) Option { return lockerOption(func(c *config) { c.drift = d }) }

// WithGuardTime sets the guard time: the longest TTL that anyone in the fleet may use. A master that was restarted does
// not vote for this long, and for at least 30 s, unless it is a durable one: see [WithDurableMasters]. The guard time
// belongs to the fleet. It stands on the masters; if they have another value, that value applies. (Their records have
// two numbers, the longest TTL and the quarantine: [Locker.RaiseGuardTime] raises one after the other.) From [MinTTL]
// to [MaxTTL]; the default is [DefaultGuardTime].
func WithGuardTime(g time.Duration) Option {
	return lockerOption(func(c *config) { c.guard, c.noGuard = g, false })
}

// WithoutGuard turns the restart guard off: a master that restarts empty votes at once, and two holders at a time are
// then possible. For masters that never forget, such as those that fsync every write.
// All programs of a prefix have the guard, or none has it: a program without the guard ignores the longest TTL of the
// fleet and the epoch of [Locker.ChangeMasters].
func WithoutGuard() Option { return lockerOption(func(c *config) { c.guard, c.noGuard = 0, true }) }

// WithoutReentry makes locking a name with a context that already owns it an error, [ErrReentry].
func WithoutReentry() Option { return lockerOption(func(c *config) { c.reentry = false }) }

// WithTrace registers callbacks for what the Locker does; those of several Traces are called one after the other.
// Without any, the default, each event costs one nil check.
func WithTrace(t ...*Trace) Option {
	return lockerOption(func(c *config) { c.trace = join(t) })
}

// WithClock replaces the clock, for tests and simulations. The default, and nil, is the clock of the pool.
func WithClock(k *clock.Clock) Option { return lockerOption(func(c *config) { c.clock = k }) }

// WithOwner sets a label that people see: in inspections and in errors of those who find the name held. It identifies
// nobody: the masters know a Locker by a UUID of its own, and two Lockers with one label are two owners. The default is
// the name of the host and the id of the process; at most 64 bytes, without control characters.
func WithOwner(label string) Option { return lockerOption(func(c *config) { c.label = label }) }

// check looks at everything that New was given.
func (c *config) check() error {
	for _, err := range []error{scripts.CheckPrefix(c.prefix), c.drift.Check(), scripts.CheckLabel(c.label)} {
		if err != nil {
			return invalid("%v", err)
		}
	}
	if c.log == nil {
		return invalid("WithLogger(nil): slog.DiscardHandler is the handler of a logger that writes nothing")
	}
	if c.group != (scripts.Group{}) {
		if err := spread.Check(c.group); err != nil {
			return invalid("%v", err)
		}
		if c.noGuard {
			return invalid("WithGroup does not go with WithoutGuard: the admission records keep programs apart whose " +
				"numbers of groups differ")
		}
	}
	if !c.noGuard && (c.guard < MinTTL || c.guard > MaxTTL) {
		return invalid("guard time %v: it is from %v to %v; WithoutGuard turns the guard off", c.guard, MinTTL, MaxTTL)
	}
	return c.lock.check(c)
}

// check looks at what one call of a Locker goes by, and settles what follows from it.
func (c *lockConfig) check(l *config) error {
	if c.Least = c.minValidity; c.Least == 0 {
		c.Least = c.TTL / 2
	}
	drift, longest := l.drift.Of(c.TTL), cmp.Or(l.guard, MaxTTL)
	switch {
	case l.guard > 0 && c.TTL > l.guard:
		return invalid("TTL %v is above the guard time %v: raise WithGuardTime in the whole fleet, or lower WithTTL",
			c.TTL, l.guard)
	case c.TTL < MinTTL || c.TTL > MaxTTL:
		return invalid("TTL %v: it is from %v to %v", c.TTL, MinTTL, longest)
	case drift >= c.TTL:
		return invalid("a drift of %v leaves nothing of a TTL of %v", drift, c.TTL)
	case c.Least < 0 || c.Least > c.TTL-drift:
		return invalid("minimum validity %v: a TTL of %v leaves at most %v after a drift of %v",
			c.Least, c.TTL, c.TTL-drift, drift)
	case c.MinHold < 0:
		return invalid("minimum hold %v is negative; 0 is none", c.MinHold)
	case c.MinHold > longest || c.MinHold+l.drift.Of(c.MinHold) > longest: // the sum of a longer one may overflow
		return invalid("minimum hold %v and its drift of %v are above %v, the longest time for which masters keep a name: "+
			"the guard time, or %v without the guard", c.MinHold, l.drift.Of(c.MinHold), longest, MaxTTL)
	case c.MaxHold < 0:
		return invalid("maximum hold %v is negative; 0 is no bound", c.MaxHold)
	case c.waitLimit < 0:
		return invalid("wait limit %v is negative; 0 is no limit", c.waitLimit)
	case c.tries < 0:
		return invalid("%d tries: 0 means until the context ends", c.tries)
	case c.HandOns < 0 || c.HandOns > mostHandOns || c.HandOnTime < 0 || c.HandOnTime > mostHandOnTime:
		return invalid("handing on %d times within %v: at most %d times, within %v; 0 times is not at all",
			c.HandOns, c.HandOnTime, mostHandOns, mostHandOnTime)
	case c.fair && c.bounded():
		return invalid("a fair call waits in the queues until its context ends: " +
			"WithFair and WithPriority do not go with a bound of the tries or a backoff of one's own")
	case c.priority < -1000 || c.priority > 1000:
		return invalid("priority %d: it is from -1000 to 1000", c.priority)
	}
	if c.fair {
		c.HandOns = 0
	}
	if c.backoff != nil {
		return nil
	}
	return c.delays.check()
}

// bounded reports whether the call gives up by itself: then it does not stand in line.
func (c *lockConfig) bounded() bool { return c.tries > 0 || c.backoff != nil || c.delays.Tries > 0 }

// start makes the Backoff of one call.
func (c *lockConfig) start() Backoff {
	if c.backoff != nil {
		return c.backoff()
	}
	return c.delays.Start()
}

// with returns c as changed by the options of one call. Without any it is c itself, which nobody changes.
func (c *lockConfig) with(opts []LockOption, l *config) (*lockConfig, error) {
	if len(opts) == 0 {
		return c, nil // checked by New
	}
	changed := *c
	for _, o := range opts {
		if o == nil {
			return nil, invalid("a nil option")
		}
		o.applyLock(&changed)
	}
	return &changed, changed.check(l)
}

// WithDurableMasters names masters, as [pool.Pool.Addr] does, that remember every write that they have answered: all
// of them where no name is given. Such a master votes at once when it has restarted with its memory, instead of
// waiting in quarantine, and the locks on it still count; empty, or with the memory of another, it waits as any other
// does. Any other master waits after each restart, whether it has kept its data or not.
//
// It is the operator's word that they are set up so (appendonly yes, appendfsync always, no-appendfsync-on-rewrite
// no, on a disk that keeps what it has synced; [Locker.Check] looks at the settings), that they have no replicas, and
// that none is ever started from an old copy of its data. If one must be: start it where no program reaches it, delete
// its admission record (the prefix and ":admission"), and then let it in; it waits as a new one does. If the word is
// not kept, held locks are given away.
//
// Give it to all programs of the fleet, with the same addresses. A program without it, or that knows the master by
// another address, begins a quarantine, and then all wait. A name that no master has is told by [Locker.Warnings].
func WithDurableMasters(addrs ...string) Option {
	durable := append([]string{}, addrs...)
	return lockerOption(func(c *config) { c.durable = durable })
}

package redlock

import (
	"strings"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// The bounds and defaults of the options.
const (
	// MinTTL is the shortest TTL: below it the drift and a single network round trip leave nothing.
	MinTTL = 10 * time.Millisecond
	// MaxTTL is the longest TTL where the restart guard is off; where it is on, the guard time is.
	MaxTTL = 24 * time.Hour
	// DefaultTTL is the TTL where none is given.
	DefaultTTL = 10 * time.Second
	// DefaultGuardTime is the guard time where none is given.
	DefaultGuardTime = 30 * time.Second
	// DefaultBarTTL is how long the masters remember the tokens of a name, at the least.
	DefaultBarTTL = time.Hour
	// DefaultPrefix begins the keys where no other prefix is given.
	DefaultPrefix = "redlock"

	// openWindow is how far a ballot may be from a master's time where the guard is off.
	openWindow = 15 * time.Second
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
	lock    lockConfig // the default of its calls
	prefix  string
	drift   clock.Drift
	guard   time.Duration // 0: off
	barTTL  time.Duration
	clock   *clock.Clock
	trace   *Trace
	reentry bool
	id      string
	durable []string // addresses; nil: none; empty: all
	set     *Set     // nil: the masters of the pool
	source  ConfigSource
}

// lockConfig is what one call goes by.
type lockConfig struct {
	ttl         time.Duration
	minValidity time.Duration // 0: half of the TTL
	maxHold     time.Duration // 0: no limit
	extend      bool
	backoff     func() Backoff // nil: delays
	delays      Delays
	delaysGiven bool
	tries       int // 0: no bound
	handOns     int // 0: off
	handOnTime  time.Duration
	fair        bool
	priority    int
}

func defaultConfig() config {
	return config{
		lock:    lockConfig{ttl: DefaultTTL, extend: true, delays: DefaultDelays, handOns: DefaultHandOns, handOnTime: DefaultHandOnTime},
		prefix:  DefaultPrefix,
		drift:   clock.DefaultDrift,
		guard:   DefaultGuardTime,
		barTTL:  DefaultBarTTL,
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
func WithTTL(ttl time.Duration) LockOption { return lockOption(func(c *lockConfig) { c.ttl = ttl }) }

// WithMinValidity sets how much validity an acquire must have left to count; one that has less is rolled back and is
// [ErrTooSlow]. The default, and the meaning of 0, is half of the TTL.
func WithMinValidity(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.minValidity = d })
}

// WithMaxHold bounds how long a lock is held: then its context ends with [ErrMaxHold], and it is no longer extended, so
// that a worker that hangs does not keep the name for ever. 0, the default, is no bound.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.maxHold = d })
}

// WithExtension turns the extending of held locks on, which is the default, or off: then a lock ends with its first
// validity unless [Lock.Extend] is called.
func WithExtension(on bool) LockOption { return lockOption(func(c *lockConfig) { c.extend = on }) }

// WithDelays sets the pauses between the attempts of a blocked call that is not woken by the masters. The default,
// [DefaultDelays], is for calls that cannot hear the masters or find no quorum of them; where they can, the masters'
// word and the TTL end the pause, and without either they look again after 250 ms, later every second or, the first in
// the queue, every five. Delays that are given hold in every case.
func WithDelays(d Delays) LockOption {
	return lockOption(func(c *lockConfig) { c.delays, c.backoff, c.delaysGiven = d, nil, true })
}

// WithHandOn bounds how often, and for how long after the masters were asked, a hold passes from one goroutine of this
// Locker to the next that waits for the name, before it is released so that other processes get their turn. It saves
// the masters two rounds each time. The defaults are [DefaultHandOns] and [DefaultHandOnTime]; at most 1000 times, and
// no longer than a minute. 0 times turns it off. Fair waiters never get a hold so.
func WithHandOn(times int, atMost time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.handOns, c.handOnTime = times, atMost })
}

// WithFair has a call wait its turn among all processes: it does not take a name that is free while another waiter is
// ahead of it in the masters' queues, nor does it get, or give, the lock by handing on within the process. Waiters are in
// the order in which they called, by the masters' clocks. The order is best effort: it is kept by each master for itself.
//
// Without it, goroutines of one process may follow each other. It does not go with a bound of the tries, or WithBackoff:
// such calls do not stand in line. [Locker.TryLock] overtakes.
func WithFair() LockOption { return lockOption(func(c *lockConfig) { c.fair = true }) }

// WithPriority is [WithFair], and puts the call before all waiters of a lower priority, and behind those of a higher
// one. The default is 0; from -1000 to 1000.
func WithPriority(n int) LockOption {
	return lockOption(func(c *lockConfig) { c.fair, c.priority = true, n })
}

// WithTries bounds the attempts of a blocked call, the first one included, whatever the pauses between them; 0, the
// default, is no bound. A call with a bound does not stand in line for the name: it tries, pauses and tries again,
// and where others wait it may not get it.
func WithTries(n int) LockOption { return lockOption(func(c *lockConfig) { c.tries = n }) }

// WithBackoff sets a policy of one's own: start is called once for each call that has to wait, and must
// not return nil. Such a call does not stand in line for the name: it tries, pauses as it is told, and tries
// again, and where others wait for the name it may not get it.
func WithBackoff(start func() Backoff) LockOption {
	return lockOption(func(c *lockConfig) { c.backoff = start })
}

// WithPrefix sets what the keys begin with. Lockers with different prefixes know nothing of each other, and each prefix
// is a fleet with a guard time of its own. The default is [DefaultPrefix]; braces are refused.
func WithPrefix(prefix string) Option { return lockerOption(func(c *config) { c.prefix = prefix }) }

// WithDrift sets by how much the clocks of this machine and of the masters may differ in rate. The default is
// [clock.DefaultDrift], 1 % of the TTL + 2 ms.
func WithDrift(d clock.Drift) Option { return lockerOption(func(c *config) { c.drift = d }) }

// WithGuardTime sets the longest TTL that anyone in the fleet may use, which is also how long a master that restarted
// empty does not vote. It belongs to the fleet: it stands on the masters, and where they have another one theirs holds.
// From [MinTTL] to [MaxTTL]; the default is [DefaultGuardTime].
func WithGuardTime(g time.Duration) Option {
	return lockerOption(func(c *config) {
		if c.guard = g; g == 0 {
			c.guard = -1 // not "off" by accident
		}
	})
}

// WithoutGuard turns the restart guard off: a master that restarts empty votes at once, and two holders at a time are
// then possible. For masters that never forget, such as those that fsync every write.
func WithoutGuard() Option { return lockerOption(func(c *config) { c.guard = 0 }) }

// WithBarTTL sets how long the masters remember the largest token of a name after it was last taken: at least the guard
// time and 30 s, at most 30 days. The default is [DefaultBarTTL], and up to half an hour more: with it, and with the default
// guard time, a name that is taken again and again costs the masters less.
func WithBarTTL(d time.Duration) Option { return lockerOption(func(c *config) { c.barTTL = d }) }

// WithoutReentry makes locking a name with a context that already owns it an error, [ErrReentry].
func WithoutReentry() Option { return lockerOption(func(c *config) { c.reentry = false }) }

// WithTrace has t told of what the Locker does. nil, the default, costs one comparison an event.
func WithTrace(t *Trace) Option { return lockerOption(func(c *config) { c.trace = t }) }

// WithClock replaces the clock, for tests and simulations; nil is the real one.
func WithClock(k *clock.Clock) Option { return lockerOption(func(c *config) { c.clock = k }) }

// WithID sets the id of the Locker, which begins the id of each of its holds and is what an inspection shows. It must
// be unlike that of any other Locker that ever lived; the default is a random UUID.
func WithID(id string) Option { return lockerOption(func(c *config) { c.id = id }) }

// check looks at everything that New was given.
func (c *config) check() error {
	if err := scripts.CheckPrefix(c.prefix); err != nil {
		return invalid("%v", err)
	}
	if err := c.drift.Check(); err != nil {
		return invalid("%v", err)
	}
	if c.guard != 0 && (c.guard < MinTTL || c.guard > MaxTTL) {
		given := c.guard
		if given == -1 { // see WithGuardTime
			given = 0
		}
		return invalid("guard time %v: it is from %v to %v; WithoutGuard turns the guard off", given, MinTTL, MaxTTL)
	}
	if c.barTTL < c.guard || c.barTTL < 2*openWindow || c.barTTL > 30*24*time.Hour {
		return invalid("bar TTL %v: it is at least the guard time (%v) and %v, and at most 30 days", c.barTTL, c.guard, 2*openWindow)
	}
	if len(c.id) > 256 {
		return invalid("the Locker's id has %d bytes; 256 are the most", len(c.id))
	}
	if strings.HasPrefix(c.id, ">") {
		return invalid("the Locker's id %.40q begins with '>', as waiters do", c.id)
	}
	return c.lock.check(c)
}

// check looks at what one call goes by, with its Locker's options.
func (c *lockConfig) check(l *config) error {
	longest := MaxTTL
	if l.guard > 0 {
		longest = l.guard
	}
	if c.ttl < MinTTL || c.ttl > longest {
		if l.guard > 0 && c.ttl > longest {
			return invalid("TTL %v is above the guard time %v: raise WithGuardTime in the whole fleet, or lower WithTTL", c.ttl, l.guard)
		}
		return invalid("TTL %v: it is from %v to %v", c.ttl, MinTTL, longest)
	}
	drift := l.drift.Of(c.ttl)
	if drift >= c.ttl {
		return invalid("a drift of %v leaves nothing of a TTL of %v", drift, c.ttl)
	}
	if c.minValidity < 0 || c.least() > c.ttl-drift {
		return invalid("minimum validity %v: a TTL of %v leaves at most %v after a drift of %v", c.least(), c.ttl, c.ttl-drift, drift)
	}
	if c.maxHold < 0 {
		return invalid("maximum hold %v is negative; 0 is no bound", c.maxHold)
	}
	if c.tries < 0 {
		return invalid("%d tries: 0 means until the context ends", c.tries)
	}
	if c.handOns < 0 || c.handOns > 1000 || c.handOnTime < 0 || c.handOnTime > time.Minute {
		return invalid("handing on %d times within %v: at most 1000 times, within a minute; 0 times turns it off", c.handOns, c.handOnTime)
	}
	if c.fair && c.bounded() {
		return invalid("a fair call stands in line until its context ends: WithFair and WithPriority do not go with a bound of the tries or a backoff of one's own")
	}
	if c.priority < -1000 || c.priority > 1000 {
		return invalid("priority %d: it is from -1000 to 1000", c.priority)
	}
	if c.backoff != nil {
		return nil
	}
	return c.delays.check()
}

// bounded reports whether the call gives up by itself: then it does not stand in line.
func (c *lockConfig) bounded() bool { return c.tries > 0 || c.backoff != nil || c.delays.Tries > 0 }

// spare is the number of tokens that an acquire reserves for handing on.
func (c *lockConfig) spare() int64 {
	if c.fair {
		return 0
	}
	return int64(c.handOns)
}

// least is the validity that an acquire must have left.
func (c *lockConfig) least() time.Duration {
	if c.minValidity == 0 {
		return c.ttl / 2
	}
	return c.minValidity
}

// differs reports whether an attempt of a call with other may succeed where one with c fails, nobody holding the name,
// or be made sooner.
func (c *lockConfig) differs(other *lockConfig) bool {
	return c.ttl != other.ttl || c.least() != other.least() || c.delays != other.delays
}

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

// WithDurableMasters names masters, as [pool.Pool.Addr] does, that remember every write that they have answered: all of
// them where no name is given. Such a master votes at once when it has restarted with its memory, instead of waiting for
// the guard time; empty, or with the memory of another, it waits as any other does.
//
// It is the operator's word that they are set up so (appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, on
// a disk that keeps what it has synced; [Locker.Check] looks at the settings), and that none is ever started from an old
// copy of its data. One that must be: start it where no program reaches it, delete its marker (the prefix and ":marker"),
// and then let it in; it waits as a new one does. A word that is not kept gives held locks away.
//
// Give it to all programs of the fleet, with the same addresses: one without it, or that knows the master by another
// address, begins a quarantine, and then all wait. A name that no master has is told by [Locker.Warnings]. A master that
// is named is admitted once more at that moment, by a marker with its address; it is not known as durable before.
func WithDurableMasters(addrs ...string) Option {
	durable := append([]string{}, addrs...)
	return lockerOption(func(c *config) { c.durable = durable })
}

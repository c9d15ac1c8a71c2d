package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Bounds and defaults of the settings.
const (
	MinTTL = 10 * time.Millisecond // a smaller TTL would be used up by the drift and a single round trip
	MaxTTL = 24 * time.Hour        // also the limit of the max TTL

	DefaultTTL         = 10 * time.Second
	DefaultHandoffs    = 32
	defaultHandoffTime = 100 * time.Millisecond
	defaultHoldWarning = 10 * time.Minute

	// A call that does not wait for a holder waits this many timeouts of the transport for the limit of concurrent
	// attempts. With fewer timeouts, callers that fail and immediately try again would use the processor time of callers
	// that acquire locks.
	turnTimeouts = 10
)

// Upper bounds of the limits of local hand-offs: see "Handoffs" in package lease. The masters would accept more.
const (
	mostHandoffs    = 1000
	mostHandoffTime = time.Minute
)

// A Config holds the settings of a client. The fields are set by options of package redlock, which describes them.
type Config struct {
	Defaults   Settings // of all calls
	Prefix     string
	MaxTTL     time.Duration           // 0: the restart guard is off
	Unguarded  bool                    // whether an option or a URL has turned the restart guard off
	Clock      *clock.Clock            // nil: the clock of the transport
	Event      func(redlockinfo.Event) // the Event callbacks of all traces; nil: none
	Dos        []DoFunc                // the Do callbacks of all traces
	Log        *slog.Logger
	Label      string
	Durable    []string           // the names of durable masters
	AllDurable bool               // whether all masters are durable
	Observer   bool               // whether the client writes no admission records
	Initial    []Configuration    // initial configurations, indexed by shard; empty: the masters of the transport
	Shard      scripts.Shard      // the shard of the client, and the number of shards
	Transport  []transport.Option // for the masters that redlock.Open connects to
	Public     func(error) error  // returns an *Error in the form that users see

	checked Settings // Defaults, checked: of the calls without options
}

// A DoFunc is the Do callback of a trace.
type DoFunc func(ctx context.Context, name string) context.Context

// Settings are those of one call.
type Settings struct {
	lease.Terms
	Poll       func(retry int) time.Duration // pause before a retry (from 1) of a call that receives no wake-ups
	WaitLimit  time.Duration                 // 0: none
	QuorumWait time.Duration                 // 0: no limit
	Tries      int                           // 0: no limit
	Fair       bool
	Priority   int
	Reentry    bool // whether a context that owns the name re-enters its lock
}

// An Option sets fields of a [Config].
type Option interface{ applyTo(*Config) }

// A CallOption sets fields of the [Settings] of one call, or of the defaults of all calls.
type CallOption interface {
	Option
	applyToCall(*Settings)
}

// OptionFunc is an [Option].
type OptionFunc func(*Config)

func (f OptionFunc) applyTo(c *Config) { f(c) }

// CallOptionFunc is a [CallOption].
type CallOptionFunc func(*Settings)

func (f CallOptionFunc) applyTo(c *Config)       { f(&c.Defaults) }
func (f CallOptionFunc) applyToCall(s *Settings) { f(s) }

// Configure applies the options to the defaults.
func Configure[O Option](opts []O) (*Config, error) {
	c := defaults()
	for _, o := range opts {
		if Option(o) == nil {
			return nil, Invalid("an option is nil")
		}
		o.applyTo(&c)
	}
	return &c, nil
}

// Apply returns the defaults of c to which opts are applied. Without opts all calls get the same Settings, so callers
// must not modify the result.
func Apply[O CallOption](c *Client, opts []O) (*Settings, error) {
	if len(opts) == 0 {
		return &c.cfg.checked, nil
	}
	changed := c.cfg.Defaults
	for _, o := range opts {
		if CallOption(o) == nil {
			return nil, Invalid("an option is nil")
		}
		o.applyToCall(&changed)
	}
	return &changed, changed.check(&c.cfg)
}

// remembers reports whether the master at addr is declared durable.
func (c *Config) remembers(addr string) bool { return c.AllDurable || slices.Contains(c.Durable, addr) }

// labelOfProcess returns the default label of a process: the host name, truncated if necessary, and the process id.
func labelOfProcess(host string, pid int) string {
	suffix := fmt.Sprintf("/%d", pid)
	host = host[:min(len(host), scripts.MaxLabel-len(suffix))]
	if host == "" || scripts.CheckLabel(host) != nil {
		host = "unknown"
	}
	return host + suffix
}

func defaults() Config {
	host, _ := os.Hostname()
	return Config{
		Defaults: Settings{Poll: defaultPause, Terms: lease.Terms{
			TTL: DefaultTTL, Extend: true, Handoffs: DefaultHandoffs, HandoffTime: defaultHandoffTime,
			HoldWarning: defaultHoldWarning,
		}},
		Prefix: scripts.DefaultPrefix,
		MaxTTL: scripts.DefaultMaxTTL,
		Log:    slog.Default(),
		Label:  labelOfProcess(host, os.Getpid()),
	}
}

// AsObserver makes a client that writes no admission records.
func AsObserver() Option { return OptionFunc(func(c *Config) { c.Observer = true }) }

// WithShard makes a client of the shard with this number, from 1, out of a number of shards.
func WithShard(number, of int) Option {
	return OptionFunc(func(c *Config) { c.Shard = scripts.Shard{Number: number, Of: of} })
}

// check validates the settings of a client.
func (c *Config) check() error {
	for _, err := range []error{scripts.CheckPrefix(c.Prefix), scripts.CheckLabel(c.Label)} {
		if err != nil {
			return Invalid("%w", err)
		}
	}
	if c.Log == nil {
		return Invalid("WithLogger(nil): to log nothing, use slog.New(slog.DiscardHandler)")
	}
	if slices.Contains(c.Durable, "") {
		return Invalid("the name of a durable master is empty: give names, or WithAllMastersDurable, or neither")
	}
	if c.Shard != (scripts.Shard{}) {
		if err := sharding.Check(c.Shard); err != nil {
			return Invalid("%w", err)
		}
	}
	if !c.Unguarded && (c.MaxTTL < MinTTL || c.MaxTTL > MaxTTL) {
		return Invalid("max TTL %v: must be from %v to %v; WithoutRestartGuard turns the guard off%s", c.MaxTTL, MinTTL,
			MaxTTL, aboutUnit(c.MaxTTL))
	}
	c.checked = c.Defaults
	return c.checked.check(c)
}

// check validates the settings of one call, and sets the settings that depend on others.
func (s *Settings) check(cfg *Config) error {
	s.Least = cmp.Or(s.Least, s.TTL/2)
	drift, longest := lease.Drift(s.TTL), cmp.Or(cfg.MaxTTL, MaxTTL)
	switch {
	case cfg.MaxTTL > 0 && s.TTL > cfg.MaxTTL:
		advice := "leave it out"
		if cfg.MaxTTL < DefaultTTL {
			advice = fmt.Sprintf("give at most %v", cfg.MaxTTL)
		}
		text := fmt.Sprintf("TTL %v is above the max TTL %v: a held lock is extended in the background, so it needs no long "+
			"TTL: %s", s.TTL, cfg.MaxTTL, advice)
		if s.TTL <= MaxTTL {
			text += fmt.Sprintf("; only if the name must stay locked for %v after its holder has died, raise the max TTL of "+
				"the masters (redlock max-ttl --set %v URL...), then that of all clients", s.TTL, s.TTL)
		}
		return fault.New("redlock: "+text, fault.ErrInvalid, round.ErrTTLTooLong)
	case s.TTL < MinTTL || s.TTL > MaxTTL:
		return Invalid("TTL %v: must be from %v to %v%s", s.TTL, MinTTL, longest, aboutUnit(s.TTL))
	case s.Least < 0 || s.Least > s.TTL-drift:
		return Invalid("minimum validity %v: a TTL of %v leaves at most %v after a drift of %v",
			s.Least, s.TTL, s.TTL-drift, drift)
	case s.MinHold < 0:
		return Invalid("minimum hold %v is negative; 0 means none", s.MinHold)
	case s.MinHold > longest || s.MinHold+lease.Drift(s.MinHold) > longest: // checked first, since the sum may overflow
		text := fmt.Sprintf("minimum hold %v and its drift of %v are above the max TTL of this client, %v",
			s.MinHold, lease.Drift(s.MinHold), longest)
		if s.MinHold < MaxTTL/2 && cfg.MaxTTL > 0 {
			text += fmt.Sprintf(": raise that of the masters if it is lower (redlock max-ttl --set %v URL...), then WithMaxTTL "+
				"of all clients", (s.MinHold+lease.Drift(s.MinHold)).Truncate(time.Second)+time.Second)
		}
		return Invalid("%s", text)
	case s.Linger < 0:
		return Invalid("linger %v is negative; 0 releases the lock at its Unlock", s.Linger)
	case s.MaxHold < 0:
		return Invalid("maximum hold %v is negative; 0 means no limit", s.MaxHold)
	case s.WaitLimit < 0:
		return Invalid("a wait limit must be positive; without WithWaitLimit the context limits the wait, and TryLock " +
			"does not wait for a holder")
	case s.QuorumWait < 0:
		return Invalid("quorum wait %v is negative; 0 means no limit", s.QuorumWait)
	case s.Tries < 0:
		return Invalid("%d tries: must be at least 0; 0 means until the context ends", s.Tries)
	case s.Handoffs < 0 || s.Handoffs > mostHandoffs || s.HandoffTime < 0 || s.HandoffTime > mostHandoffTime:
		return Invalid("%d local hand-offs within %v: the limits are %d and %v; 0 turns them off",
			s.Handoffs, s.HandoffTime, mostHandoffs, mostHandoffTime)
	case s.Fair && s.bounded():
		return Invalid("a fair call waits in the queues until its context ends: " +
			"WithFair and WithPriority exclude WithTries")
	case s.Priority < -1000 || s.Priority > 1000:
		return Invalid("priority %d: must be from -1000 to 1000", s.Priority)
	}
	if s.MinHold > 0 { // the call needs a lease of its own
		s.Fair, s.Linger = true, 0
	}
	if s.Fair {
		s.Handoffs = 0
	}
	return s.checkUnits()
}

// leastDuration is above any number of seconds that was given without a unit, and below what is left of a deadline in
// practice.
const leastDuration = 10 * time.Microsecond

// checkUnits refuses durations that were most likely meant in another unit, as in WithWaitLimit(10).
func (s *Settings) checkUnits() error {
	for _, given := range []struct {
		what string
		time.Duration
	}{
		{"maximum hold", s.MaxHold}, {"minimum hold", s.MinHold}, {"linger", s.Linger},
		{"hold warning", s.HoldWarning}, {"wait limit", s.WaitLimit}, {"quorum wait", s.QuorumWait},
	} {
		if about := aboutUnit(given.Duration); about != "" {
			return Invalid("%s %v: must be at least %v%s", given.what, given.Duration, leastDuration, about)
		}
	}
	return nil
}

// aboutUnit returns advice for a duration that was most likely given without a unit, and otherwise "".
func aboutUnit(d time.Duration) string {
	if d <= 0 || d >= leastDuration {
		return ""
	}
	return "; a number without a unit is in nanoseconds"
}

// bounded reports whether the call has a limit of tries. Such a call does not wait in the queues.
func (s *Settings) bounded() bool { return s.Tries > 0 }

// A warning is a sentence about settings that are valid but risky, and the level at which it is logged.
type warning struct {
	level slog.Level
	text  string
	list  bool // whether it is about the list of masters as a whole
}

// configWarnings returns warnings about the settings with these masters. One master is a choice, so it is only noted.
func configWarnings(c *Config, first *quorum.Config, p *transport.Transport) (warnings []warning) {
	size := func(level slog.Level, format string, args ...any) {
		warnings = append(warnings, warning{level, fmt.Sprintf("redlock: "+format, args...), true})
	}
	for _, set := range first.Rule.Sets() { // while the masters are changed, there are two sets
		switch n := set.Len(); {
		case n == 1 && slices.ContainsFunc(first.Order, p.FailsOver):
			size(slog.LevelWarn, "one master with failover: after each failover no lock can be acquired until the max TTL has "+
				"passed")
		case n == 1:
			wait := ""
			if addr := p.Addr(first.Order[0]); c.MaxTTL > 0 && !c.remembers(addr) {
				wait = fmt.Sprintf("; after a restart it grants no locks for %v, unless WithDurableMasters names it, which needs "+
					"appendonly yes, appendfsync always and no-appendfsync-on-rewrite no", max(c.MaxTTL, admission.Shortest))
			}
			size(slog.LevelInfo, "one master: locks are as safe as that one server%s", wait)
		case n%2 == 0:
			size(slog.LevelWarn, "%d masters survive the loss of %d, as %d would; use an odd number", n, (n-1)/2, n-1)
		}
	}
	if c.MaxTTL == 0 && len(first.Order) > 1 {
		warnings = append(warnings, warning{level: slog.LevelWarn,
			text: "redlock: the restart guard is off: a master that restarts empty can grant a held lock again"})
	}
	for _, text := range p.Warnings() {
		warnings = append(warnings, warning{level: slog.LevelWarn, text: text})
	}
	return warnings
}

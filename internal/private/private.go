package private

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// The defaults of options.
const (
	DefaultTTL    = 10 * time.Second
	DefaultMaxTTL = 30 * time.Second
	DefaultPrefix = "redlock"
)

// Settings are options of a Locker, or of one call. A zero field sets nothing.
type Settings struct {
	// Clock replaces that of the pool. Observer makes the Locker write no admission records. Shard is the number of the
	// only shard that the Locker has, of Shards. These are options of a Locker.
	Clock         *clock.Clock
	Observer      bool
	Shard, Shards int

	// MinValidity is the validity that an acquire must leave, by default half of the TTL. Handoffs bounds local
	// hand-offs.
	MinValidity time.Duration
	Handoffs    *Handoffs
}

// Handoffs bounds how often and for how long a lock is handed off within a Locker.
type Handoffs struct {
	Most   int
	Within time.Duration
}

// A Change is the progress of a change of the masters, as they report it.
type Change struct {
	// Raised is the number of old masters with the epoch in their records, or a later one: they refuse clients with an
	// earlier configuration. RaisedAll reports whether they are a majority.
	Raised    int
	RaisedAll bool
	// Complete reports whether a majority has had the epoch for so long that no lease depends on the old masters alone.
	// Left is the time until then.
	Complete bool
	Left     time.Duration
	// Open is the number of next masters that may act alone; of all masters if the epoch is even. OpenAll reports
	// whether they are a majority.
	Open    int
	OpenAll bool
}

// Tools are calls of one Locker.
type Tools interface {
	Warnings() []string
	Logger() *slog.Logger
	Spare() int                        // masters that may still fail; -1: no lock can be taken
	Settle(ctx context.Context)        // until each master has answered or is known to be down
	Shard(name string) int             // the number of the shard of a name, from 1
	Member(locks any, name string) any // the *redlock.Lock of a name in a *redlock.Locks; nil: it has no such name
	WrongList() error                  // error of a master whose record says that the list of the Locker is wrong
	Change(ctx context.Context) (Change, error)
	RaiseEpoch(ctx context.Context) error
	FinishChange(ctx context.Context) error
	AbortChange(ctx context.Context) error
}

var (
	optionFunc     func(Settings) any
	toolsFunc      func(locker any) Tools
	deploymentFunc func(opts any) (prefix string, maxTTL time.Duration)
	heldOnFunc     func(lock any) (on, n int)
)

// ErrIncomplete is what a step of a change returns until enough masters have reported the step before it.
var ErrIncomplete error

// Provide sets the tools; package redlock calls it.
func Provide(
	option func(Settings) any, tools func(locker any) Tools, deployment func(opts any) (string, time.Duration),
	incomplete error, heldOn func(lock any) (on, n int),
) bool {
	optionFunc, toolsFunc, deploymentFunc, ErrIncomplete, heldOnFunc = option, tools, deployment, incomplete, heldOn
	return true
}

// Option returns the settings as O, which is redlock.Option or redlock.LockOption.
func Option[O any](s Settings) O { return optionFunc(s).(O) }

// Of returns the tools of a *redlock.Locker.
func Of(locker any) Tools { return toolsFunc(locker) }

// Deployment returns the prefix and the max TTL that these options, a []redlock.Option, set for a Locker.
func Deployment(opts any) (prefix string, maxTTL time.Duration) { return deploymentFunc(opts) }

// HeldOn returns on how many of the n masters a *redlock.Lock is, as far as its Locker knows.
func HeldOn(lock any) (on, n int) { return heldOnFunc(lock) }

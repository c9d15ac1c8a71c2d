package private

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The defaults of options.
const (
	DefaultTTL    = 10 * time.Second
	DefaultMaxTTL = 30 * time.Second
	DefaultPrefix = "redlock"
)

// Settings are options of a Locker, or of one call. A zero field sets nothing.
type Settings struct {
	// Options of a Locker. Clock replaces the clock of the pool. With Observer, the Locker writes no admission records.
	// Shard is the number of the only shard that the Locker uses, and Shards is the number of shards.
	Clock         *clock.Clock
	Observer      bool
	Shard, Shards int

	// Options of one call. MinValidity is the validity that must be left after an acquire, by default half of the TTL.
	// Handoffs bounds local hand-offs. With Poll, the call does not wait in the queues, and pauses before each retry.
	MinValidity time.Duration
	Handoffs    *Handoffs
	Poll        func(retry int) time.Duration
}

// Handoffs bounds the local hand-offs of one lease: at most Most, all within the time Within.
type Handoffs struct {
	Most   int
	Within time.Duration
}

// A Change is the progress of a change of the masters, as the masters report it.
type Change struct {
	// Raised is the number of old masters whose records contain the epoch or a later one, so that they refuse clients
	// with an earlier configuration. RaisedAll reports whether these masters are a majority.
	Raised    int
	RaisedAll bool
	// Complete reports whether a majority has stored the epoch for long enough: no lease depends on the old masters alone.
	// Left is the time until Complete becomes true.
	Complete bool
	Left     time.Duration
	// Open is the number of next masters, or of all masters if the epoch is even, whose records say that the configuration
	// of only these masters is final. OpenAll reports whether Open is a majority.
	Open    int
	OpenAll bool
}

// Tools are the calls of one Locker that package redlock does not export.
type Tools interface {
	Warnings() []string
	Logger() *slog.Logger
	FileUnusable(yes bool) // records whether the file of the masters cannot be used, for Stats
	// Verdict sends nothing. unable are findings about masters that grant no lock although the Locker has not seen it.
	Verdict(unable ...redlockinfo.Finding) redlockinfo.Verdict
	Settle(ctx context.Context)                  // waits until each master has answered or is known to be down
	Shard(name string) int                       // the number of the shard of a name, from 1
	Transports() []*transport.Transport          // the connections of each shard
	Lists() []string                             // hash of the configuration of each shard, as CLIENT LIST shows it
	WrongList() error                            // error if a master's record says that the list of the Locker is wrong
	Replaces(ctx context.Context, old any) error // replaces the records of the *redlock.Locker old, of another layout
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

// ErrIncomplete is the error that a step of a change returns until enough masters have reported the previous step.
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

// HeldOn returns on how many of the n masters a *redlock.Lock is held, as far as its Locker knows.
func HeldOn(lock any) (on, n int) { return heldOnFunc(lock) }

package redlock

import (
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Access to internals for the tests of this directory.

// WithShard makes the Locker serve the shard with this number, out of a total of shards.
func WithShard(number, total int) Option { return client.WithShard(number, total) }

func WithClock(k *clock.Clock) Option { return client.WithClock(k) }

func WithObserver() Option { return client.AsObserver() }

func WithMinValidity(d time.Duration) LockOption { return client.WithMinValidity(d) }

func WithHandoff(times int, atMost time.Duration) LockOption {
	return client.WithHandoffs(times, atMost)
}

// WithPause sets the pauses of a call that no wake-ups can reach.
func WithPause(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.Poll = func(int) time.Duration { return d } })
}

const (
	MinTTL          = client.MinTTL
	MaxTTL          = client.MaxTTL
	DefaultTTL      = client.DefaultTTL
	DefaultHandoffs = client.DefaultHandoffs
	DefaultMaxTTL   = scripts.DefaultMaxTTL
	DefaultPrefix   = scripts.DefaultPrefix
	LongestPause    = client.LongestPause
)

// On returns a trace that calls f for events of one kind.
func On(kind redlockinfo.Kind, f func(redlockinfo.Event)) *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(e redlockinfo.Event) {
		if e.Kind == kind {
			f(e)
		}
	}}
}

// Errors that are not exported to callers.
var (
	ErrTooSlow    = round.ErrTooSlow
	ErrQuarantine = admission.ErrQuarantine
	ErrOldMasters = admission.ErrOldMasters
	ErrIncomplete = admission.ErrIncomplete
	ErrForeign    = round.ErrForeign
	ErrUpgrade    = client.ErrUpgrade
	ErrOrder      = client.ErrOrder
)

// Interrupt makes l call f at certain moments; see [client.Set.Interrupt].
func Interrupt(l *Locker, f func(moment string)) { client.SetOf(l).Interrupt(f) }

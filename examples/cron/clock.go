package main

import (
	"time"

	"github.com/jonboulle/clockwork"
)

// A skewed is a clock with a fixed error, like the clock of a host without NTP. Its timers are correct.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func newSkewed(by time.Duration) skewed { return skewed{clockwork.NewRealClock(), by} }

func (c skewed) Now() time.Time                  { return c.Clock.Now().Add(c.by) }
func (c skewed) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c skewed) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

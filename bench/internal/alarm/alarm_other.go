//go:build !linux

// Package alarm uses Go's own timers on systems other than Linux.
package alarm

import "time"

// An Alarm may be used by one goroutine at a time.
type Alarm struct{}

// New returns an Alarm.
func New() (*Alarm, error) { return &Alarm{}, nil }

// Sleep returns after d, or immediately if d is not positive.
func (*Alarm) Sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// Close does nothing.
func (*Alarm) Close() error { return nil }

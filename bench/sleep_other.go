//go:build !linux

package main

import "time"

// An alarm is as exact as Go's timers here.
type alarm struct{}

func newAlarm() (*alarm, error) { return &alarm{}, nil }

func (*alarm) sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (*alarm) close() error { return nil }

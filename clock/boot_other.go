//go:build !linux

package clock

import "time"

var origin = time.Now()

func realNow() Instant {
	now := time.Now()
	return Instant{boot: int64(now.Sub(origin)) + 1, wall: now.UnixNano()}
}

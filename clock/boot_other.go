//go:build !linux

package clock

func realNow() Instant { return runtime.now() }

//go:build !linux

package clock

func readBoot() (int64, bool) { return 0, false }

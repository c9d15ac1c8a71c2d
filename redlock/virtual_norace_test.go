//go:build !race

package redlock_test

const raceDetector = false

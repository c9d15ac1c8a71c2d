package clock_test

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/clock"
)

func ExampleClock() {
	var c *clock.Clock // the system clock
	began := c.Now()
	deadline := began.Add(time.Minute)
	fmt.Println(c.Now().Sub(began) < time.Minute, deadline.Sub(began))
	// Output:
	// true 1m0s
}

// New returns a clock for tests, with readings that the test sets.
func ExampleNew() {
	boot := int64(0)
	c := clock.New(func() clock.Instant { return clock.At(boot, boot) })
	began := c.Now()
	boot += int64(10 * time.Second)
	fmt.Println(c.Now().Sub(began))
	// Output:
	// 10s
}

// Runtime follows the clock of package time. In a testing/synctest bubble that is the bubble's clock.
func ExampleRuntime() {
	c := clock.Runtime()
	fmt.Println(c.Now().Sub(c.Now()) < time.Minute)
	// Output:
	// true
}

// Sub returns the difference of the clock that has advanced more. Here the machine was frozen for an hour: the wall
// clock went on, and the steady clock stopped.
func ExampleInstant() {
	before := clock.At(int64(5*time.Second), int64(100*time.Hour))
	after := clock.At(int64(6*time.Second), int64(101*time.Hour))
	fmt.Println("passed:", after.Sub(before))
	fmt.Println("of the steady clock:", time.Duration(after.Steady()-before.Steady()))
	fmt.Println("ahead by:", time.Duration(after.Skew()-before.Skew()))
	fmt.Println("a second later:", after.Add(time.Second).Sub(after))
	// Output:
	// passed: 1h0m0s
	// of the steady clock: 1s
	// ahead by: 59m59s
	// a second later: 1s
}

// At returns an Instant from two readings in nanoseconds.
func ExampleAt() {
	a, b := clock.At(0, 0), clock.At(3e9, 2e9)
	fmt.Println(b.Sub(a))
	// Output:
	// 3s
}

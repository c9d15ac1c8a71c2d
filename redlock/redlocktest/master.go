package redlocktest

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
)

// A Master is one in-memory master.
type Master struct{ m *memory.Master }

// Stop ends every connection and refuses new ones until Restart.
func (m *Master) Stop() { m.m.Stop() }

// Restart simulates a crash and a new start: connections are cut, cached scripts and subscriptions are lost, and the
// run id changes. If keepMemory is false, the keys are lost as well. Restart also ends a Hang. Even if the master has
// kept its keys, it is no longer admitted: a Locker puts the master into quarantine before it votes, unless Admit is
// called.
func (m *Master) Restart(keepMemory bool) { m.m.Restart(keepMemory) }

// Flush deletes every key, including the master's admission record.
func (m *Master) Flush() { m.m.Flush() }

// Admit writes an admission record for the present state of this master, so that it votes after Restart or Flush
// without a quarantine. The record has the prefix and the max TTL that were given to [New].
func (m *Master) Admit() { m.m.Readmit() }

// Hang stops execution and replies, but keeps connections open. Commands that arrive during a Hang are executed after
// Resume, even if the sender has closed the connection by then. The master's clock continues.
func (m *Master) Hang() { m.m.Hang() }

// Resume ends a Hang. It does nothing if the master does not hang.
func (m *Master) Resume() { m.m.Resume() }

// Delay delays each message to the master by d, and each reply by d. The default is no delay. Messages already in
// flight keep their delay.
func (m *Master) Delay(d time.Duration) {
	checkUnit("Delay", d)
	m.m.Delay(d)
}

// Refuse makes every script fail without an effect. text is the error, such as "OOM command not allowed when used
// memory > 'maxmemory'."; an empty text makes scripts succeed again.
func (m *Master) Refuse(text string) { m.m.Refuse(text) }

// DropReplies makes the master execute the next n scripts, drop their replies, and cut the connection of each.
func (m *Master) DropReplies(n int) { m.m.DropReplies(n) }

// DropRequests makes the master drop the next n scripts without executing them, and cut the connection of each.
func (m *Master) DropRequests(n int) { m.m.DropRequests(n) }

// SetClock sets the master's clock to time.Now plus offset. From then on the clock advances rate seconds per second; a
// rate of 1 is correct. The default is SetClock(0, 1).
func (m *Master) SetClock(offset time.Duration, rate float64) {
	if checkUnit("SetClock", offset.Abs()); rate < 0 {
		panic(fmt.Sprintf("redlocktest: SetClock: the rate %v is negative; a rate of 1 is correct", rate))
	}
	m.m.SetClock(offset, rate)
}

// checkUnit panics if a duration is negative, or was most likely given without a unit.
func checkUnit(call string, d time.Duration) {
	if d < 0 || d > 0 && d < 10*time.Microsecond {
		panic(fmt.Sprintf("redlocktest: %s(%v): must be 0, or at least 10µs; a number without a unit is in nanoseconds",
			call, d))
	}
}

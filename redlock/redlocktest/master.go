package redlocktest

import (
	"time"

	"github.com/redlock-go/redlock/internal/memory"
)

// A Master is one in-memory master.
type Master struct{ m *memory.Master }

// Stop ends every connection and refuses new ones until Restart.
func (m *Master) Stop() { m.m.Stop() }

// Restart simulates a crash and a new start: connections are cut, cached scripts and subscriptions are lost, and the
// run id changes. The keys are lost too, unless keepMemory says that they had been written to disk. Restart also ends
// a Hang. The master is no longer admitted, even if it has kept its keys: a Locker puts the master through a
// quarantine before it votes, unless Admit is called.
func (m *Master) Restart(keepMemory bool) { m.m.Restart(keepMemory) }

// Flush deletes every key, including the master's admission record.
func (m *Master) Flush() { m.m.Flush() }

// Admit writes an admission record for the present state of this master, for the prefix and the max TTL given to
// [New], so that it votes again after Restart or Flush without a quarantine.
func (m *Master) Admit() { m.m.Readmit() }

// Hang stops execution and replies while connections stay open. Commands sent meanwhile wait, even if the sender has
// closed the connection, and are executed after Resume; the clock continues.
func (m *Master) Hang() { m.m.Hang() }

// Resume ends a Hang. It does nothing if the master does not hang.
func (m *Master) Resume() { m.m.Resume() }

// Delay delays each message to the master by d, and each reply by d. The default 0 is no delay. Messages already in
// flight keep their delay.
func (m *Master) Delay(d time.Duration) { m.m.Delay(d) }

// Refuse makes every script fail with this error, such as "OOM command not allowed when used memory > 'maxmemory'.",
// without an effect. An empty text ends this.
func (m *Master) Refuse(text string) { m.m.Refuse(text) }

// DropReplies executes the next n scripts, but drops their replies and cuts their connections.
func (m *Master) DropReplies(n int) { m.m.DropReplies(n) }

// DropRequests drops the next n scripts without an effect and cuts the connection of each.
func (m *Master) DropRequests(n int) { m.m.DropRequests(n) }

// SetClock makes the master's clock differ by offset from time.Now at this moment, and then gain rate seconds per
// second; a rate of 1 is correct. The default is SetClock(0, 1).
func (m *Master) SetClock(offset time.Duration, rate float64) { m.m.SetClock(offset, rate) }

// Package testbed puts together, for tests, what is below leases: masters in memory, a pool, a monitor, ballots, a
// sender.
package testbed

// Package testbed puts together, for tests, what stands below grants: masters in memory, a pool, voters, ballots, a
// sender.
package testbed

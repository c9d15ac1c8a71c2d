// Package testbed assembles the parts of a client below package lease for tests: masters in memory, a pool, a monitor,
// ballots and a sender.
package testbed

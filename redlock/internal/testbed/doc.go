// Package testbed assembles the layers below leases for tests: masters in memory, a pool, a monitor, ballots, a sender.
package testbed

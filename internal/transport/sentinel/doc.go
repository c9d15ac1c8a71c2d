// Package sentinel gets the address of a master from its sentinels, and follows failovers. It has no state other than
// its goroutines.
//
// A sentinel that was isolated by a partition during a failover still reports the old address. So a majority of the
// configured sentinels must have answered, and the answer with the latest failover epoch is used.
package sentinel

// Package sentinel asks sentinels where a master is, and hears of failovers. It holds no state but its goroutines.
//
// A sentinel that was cut off during a failover still tells the old place. So a majority of those that were named must
// have answered, and the answer of the latest failover counts.
package sentinel

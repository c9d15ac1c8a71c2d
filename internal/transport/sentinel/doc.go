// Package sentinel is what the connections to a master behind Sentinel need: its URL, its address, and when a replica
// replaces it. Package transport uses it through the interface transport.Authority.
//
// A sentinel that was isolated by a partition during a failover still reports the old address. So a majority of the
// configured sentinels must have answered, and the answer with the latest failover epoch is used.
package sentinel

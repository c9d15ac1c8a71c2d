// Package storetest tests locks on masters that others replace, behind Sentinel and in a Redis Cluster, with real
// servers and programs that are processes of their own. A partition is one of the network, between two namespaces of
// it: it needs root and iproute2.
//
//	world_test.go      servers, sentinels and programs, on loopback or on both sides of a link that can be cut
//	nodes_test.go      a cluster of six nodes
//	history_test.go    what the programs wrote of their locks, and what must be true of it
//	sentinel_test.go   scenarios behind Sentinel
//	cluster_test.go    scenarios in a cluster
//
// The longest scenario takes 90 s, since a promoted master waits for 30 s at least. With -short only first locks are
// taken.
package storetest

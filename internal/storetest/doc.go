// Package storetest tests locks on masters that may be replaced by their replicas, behind Sentinel and in a Redis
// Cluster, with real servers and client processes. Tests of partitions need root and iproute2, because they cut the
// link between two network namespaces.
//
//	services_test.go     servers, sentinels and clients, on loopback or on both sides of a link that can be cut
//	nodes_test.go        a cluster of six nodes
//	clients_test.go      the clients; package history checks the histories of their locks
//	sentinel_test.go     scenarios behind Sentinel
//	cluster_test.go      scenarios in a cluster
//
// The longest scenario takes 90 s, since the quarantine of a promoted master lasts at least 30 s. Without -long, only
// the tests that need no failover run.
package storetest

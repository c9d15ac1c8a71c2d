// Package storetest tests locks on masters that replicas may replace, behind Sentinel and in a Redis Cluster, with real
// servers and client processes. A partition separates two network namespaces, which needs root and iproute2.
//
//	services_test.go     servers, sentinels and clients, on loopback or on both sides of a link that can be cut
//	nodes_test.go        a cluster of six nodes
//	clients_test.go      the clients; package history checks the histories of their locks
//	sentinel_test.go     scenarios behind Sentinel
//	cluster_test.go      scenarios in a cluster
//	credentials_test.go  credentials that change, in both
//
// The longest scenario takes 90 s, since the quarantine of a promoted master lasts at least 30 s. Without -long the
// tests only acquire first locks, and log in again.
package storetest

// Package cluster is what the connections to the nodes of a Redis Cluster need: the URL of the cluster, the node that
// owns a hash slot, whether the slot is being moved to another node, and when a replica replaces the owner. Package
// transport uses it through the interface transport.Authority.
package cluster

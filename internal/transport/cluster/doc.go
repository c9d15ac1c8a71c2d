// Package cluster asks the nodes of a Redis Cluster: which node owns a hash slot, whether the slot is being moved to
// another node, and how many replicas may be promoted in place of the owner.
package cluster

// Package sharding maps a name to a shard, which is a group of masters, and joins the Lockers of all shards.
//
// It uses rendezvous hashing: each group has a number for each name, and the name belongs to the group with the
// largest. No state is stored, every client computes the same, and a deployment that gets one more group moves to it
// only the names that now belong there.
package sharding

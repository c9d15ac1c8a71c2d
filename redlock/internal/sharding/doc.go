// Package sharding maps a name to a shard, which is a shard of masters, and joins the Lockers of all shards.
//
// It uses rendezvous hashing: each shard has a number for each name, and the name belongs to the shard with the
// largest. No state is stored, every client computes the same, and a deployment that gets one more shard moves to it
// only the names that now belong there.
package sharding

// Package sharding maps names to shards, which are separate sets of masters.
//
// The package uses rendezvous hashing: the hash of a name and a shard is the weight of the shard for this name, and the
// name belongs to the shard with the largest weight. No state is stored, and every client computes the same shard. If a
// shard is added, the only names that move are those that the new shard gets.
package sharding

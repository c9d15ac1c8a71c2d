// Package sharding maps names to shards, which are separate sets of masters.
//
// It uses rendezvous hashing: each shard has a number for each name, and the name belongs to the shard with the largest
// number. No state is stored, and every client computes the same shard. If a shard is added, only the names that now
// belong to it move.
package sharding

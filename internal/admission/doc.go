// Package admission decides which masters may vote, without I/O, clock or lock. Package monitor calls it in a loop.
//
// A master that restarts without its data could grant a name that is still held. So a master votes only with its
// admission record, a value stored on it. The record identifies the server, states that no earlier lock can still be
// valid there, and holds the masters, shard and max TTL of the deployment. A client reads the record on each new
// connection, and the scripts grant a lock only if the record has not changed since.
//
// A client cannot see whether a restarted server has all its data. So a restarted master has no vote until its
// quarantine has ended, and its leases are treated as lost until it confirms them again ([Memory]). The exceptions are
// durable masters, and all masters if the restart guard is off.
//
// # One master
//
//	                read: no record, or another server's
//	Connecting -------------------------------------------> InQuarantine
//	  |   ^  \                                               |       ^
//	  |   |   \  read: the record is this server's,          | end   | another server, or no record:
//	  |   |    \ or a durable master's before its restart    v       | start
//	  v   |     +---------------------------------------->  Voting --+
//	 Down-+
//
// A master is Blocked until its problem is fixed. Examples: the record cannot be parsed, names other masters, or has a
// later epoch; repl-backlog-ttl is too short; the settings contradict a record that calls it durable; a quarantine is
// needed, and the clock is more than 15 s off the median.
//
// # The identity of a server
//
// The identity is run_id, master_replid2 and second_repl_offset. A restart changes the first. A promotion, after which
// the server may have another server's data, changes the others. Attaching a replica or a backup changes none of them.
// When a server frees its replication backlog, master_replid2 returns to zeros. It is still the same server, so the
// record is rewritten without a quarantine. But the zeros, after repl-backlog-ttl without replicas, also hide a
// promotion. So a master whose repl-backlog-ttl is known and below the max TTL has no vote. The pool rejects replicas.
//
// A durable master persists every write before it replies, according to its operator, and votes immediately after a
// restart. It is recognized by its old record, which contains its address. A promoted server is never treated as
// durable, since replication may have copied that record to it. Nor is a server whose settings contradict: its record
// never gets the address.
//
// The settings of a durable master may be changed while it runs. Its record cannot be corrected then: if the server
// crashes, the old append-only file returns with the old record, and a client that starts then cannot know of the
// change. So the master is Blocked, its leases count as lost, and extensions on it do not count, until it has the
// settings of a durable master again, and the file is complete. A client that is connected sees "appendonly no" at its
// next heartbeat. A crash before that is a limit.
//
// # The max TTL of the deployment
//
// The record holds two durations: "maxttl", the longest TTL that the master accepts, and "quarantine", the length of
// its quarantine. Both are the max TTL of the deployment, but a quarantine lasts at least 30 s, and is raised first.
// For the masters that vote, this always holds:
//
//	the longest TTL on any master <= the quarantine on every master
//
// Admin.RaiseMaxTTL first writes the quarantine to all masters, and then reads all records again. If a record has
// changed since, RaiseMaxTTL starts over. Otherwise all masters had the new quarantine at the same time, and
// RaiseMaxTTL writes the longest TTL. To lower the max TTL, delete the records while no client runs.
//
// No write shortens a quarantine, and every write contains the longest quarantine that its client has read. Only
// RaiseMaxTTL gives a longer TTL to a master that votes. When a client admits a master, the master gets the longest TTL
// of the voting masters that the client has read since it first saw the quarantine. If there are none, clients with
// different max TTLs may have started simultaneously, and one could allow long TTLs although another has admitted a
// master with a short quarantine. So the master then gets the longest TTL in a majority of the records.
//
// These rules allow one master at a time to lose its data. If a majority loses its data, a client that starts with a
// shorter max TTL cannot know how long a quarantine must last. Give all clients the same max TTL.
//
// # The quarantine
//
// A quarantine lasts for the largest of these: the longest quarantine in any record that was read, the client's max
// TTL, and 30 s. After a failover, it is longer by the time for which the replaced server may have granted locks. If
// the record of the master has a shorter quarantine, the client lengthens it. A quarantine begins at the later of two
// times: the master's time, and the latest of the clocks that are at most 15 s off the median. It ends when the
// master's time, and the earliest of the clocks that are at most 15 s off the median, are past its end. So setting
// clocks forward does not shorten it.
//
// A quarantine is at least as long as every TTL of the deployment, so when it ends, no lock that the master has lost is
// still valid. A quarantine is also at least twice as long as skew.Window, which is 15 s. Just before the master lost
// its fences, it may have accepted a ballot 15 s ahead of its clock. After the quarantine, it accepts only ballots less
// than 15 s behind its clock, and these are larger. Both rules are needed: verify/spec has a mutant of each.
//
// A client may end a quarantine only if it has read the records of a quorum since it first saw the quarantine: they
// show whether the max TTL was raised before the master lost its data. No quarantine begins or ends while the master's
// clock is more than 15 s off the median.
//
// # The list of masters
//
// The record contains the list of all masters, or both lists in a joint configuration. A client with three masters and
// a client with five could both win a majority. So a master votes only for clients that have the list in its record.
//
// Until a majority has been admitted with a list, a client admits a master only if each master of the list has shown
// this list since the quarantine was first seen, cannot be written to by any client, or has been down for the length of
// a quarantine or since the client started. Afterwards, a different list on a minority costs only the minority's votes.
//
// Two lists may still be admitted if a client cannot reach a master that has the other list, and a master of both has
// lost its record (verify/spec/lists.pml). If clients waited for all, a dead one could prevent the first start.
//
// # Shards
//
// Names may be distributed over several shards, each with its own masters. A client with two shards and a client with
// three could hold the same name in different shards. So a record also contains its shard and the number of shards,
// such as shard=2/3, and a master votes only for clients with the shard in its record.
//
// That is not sufficient for masters without a record: two such clients could each write the first records of a
// different shard. So a master in quarantine is admitted only if one of these is true:
//
//   - In one of the shards, whichever, a majority of the masters show that this layout has voted: their records have
//     this layout, and a state other than "unproven".
//   - All masters of all shards show this layout. This is how new masters begin.
//
// A shard that is down thus does not block the others, and a shard that has lost all its records can start again. Only
// what masters show on their present connections counts, and only if it was read after the quarantine was first seen.
// A client remembers nothing: an operator may have changed the layout since. The first quarantine of a master is
// unproven, and a later one keeps what the record shows. While a record is unproven, the master refuses to extend the
// leases of clients that have not read the record, since the layout may be new.
//
// A client that sees another layout in any shard, and no proof of its own, writes no first record on any master.
// Otherwise this client could claim a shard that has just lost its records.
//
// An operator changes the layout by [Deployment.Replacement], which gives each master of both layouts a record of no
// shard, and then each master of the new one an unproven record of it. No majority then proves the old layout. A single
// master that was down, and returns with its old record, proves nothing.
package admission

// Package admission decides which masters may vote. It is pure: no I/O, no clock, no lock. Package monitor calls it in
// a loop.
//
// A master that restarts without its data could grant a name that is still held. So a master votes only with its
// admission record, a value stored on it. The record identifies the server, states that no earlier lock can still be
// valid there, and holds the masters, shard and max TTL of the deployment. A client reads the record on each new
// connection, and the scripts grant a lock only if the record has not changed since.
//
// A client cannot see whether a restarted server has all its data. So after every restart the master has no vote until
// its quarantine has ended, and each of its leases is treated as lost until the master confirms the lease again
// ([Memory]). The exceptions are durable masters, and all masters if the restart guard is off.
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
// later epoch; repl-backlog-ttl is too short; a quarantine is needed, and the clock is more than 15 s off the median.
//
// # The identity of a server
//
// The identity is run_id, master_replid2 and second_repl_offset. A restart changes the first. A promotion, after which
// the server may have another server's data, changes the others. Attaching a replica or a backup changes none of them.
// When a server frees its replication backlog, master_replid2 returns to zeros. It is still the same server, so the
// record is rewritten without a quarantine. But a server frees the backlog after repl-backlog-ttl without replicas, and
// by then the zeros would also hide a promotion. So a master whose repl-backlog-ttl is known and shorter than the max
// TTL has no vote. A replica has no vote: the pool rejects it.
//
// A durable master persists every write before it replies, according to its operator, and votes immediately after a
// restart. It is recognized by its old record, which contains its address. A promoted server is never treated as
// durable, since replication may have copied that record to it.
//
// # The max TTL of the deployment
//
// The record holds two durations: "longest", the longest TTL that the master accepts, and "quarantine", the length of
// its quarantine. Both are the max TTL of the deployment, with two exceptions. A quarantine lasts at least 30 s. When
// an operator raises the max TTL, "quarantine" is raised before "longest". For the masters that vote, this always
// holds:
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
// different max TTLs may have started on different masters at the same time. Then the master gets the longest TTL that
// a majority of the records contain. Without this rule, one of these clients could allow long TTLs although another
// client has admitted a master with a short quarantine.
//
// These rules allow one master at a time to lose its data. If a majority loses its data, a client that starts
// afterwards with a shorter max TTL than the deployment cannot know how long a quarantine must last. Give all clients
// the same max TTL.
//
// # The quarantine
//
// A quarantine lasts for the largest of these: the longest quarantine in any record that was read, the client's max
// TTL, and 30 s. After a failover, it is longer by the time for which the replaced server may have granted locks. If
// the record of the master has a shorter quarantine, the client lengthens it. A quarantine begins at the later of two
// times: the master's time, and the latest of the clocks that are at most 15 s off the median. It ends when both the
// master's time and the median are past its end. So clocks that are set forward in between do not shorten a quarantine.
//
// A quarantine is at least as long as every TTL of the deployment, so when it ends, no lock that the master has lost is
// still valid. A quarantine is also at least twice as long as skew.Window, which is 15 s. Just before the master lost
// its fences, it may have accepted a ballot 15 s ahead of its clock. After the quarantine, it accepts only ballots less
// than 15 s behind its clock, and these are larger. Both rules are needed: verify/spec has a mutant of each.
//
// A client may end a quarantine only if it has read the records of a quorum since it first saw the quarantine. If the
// max TTL was raised before the master lost its data, the records of that quorum show the new max TTL. The quarantine
// of a master can neither begin nor end while the master's clock is more than 15 s off the median.
//
// # The list of masters
//
// The record contains the list of all masters, or both lists in a joint configuration. A client that uses three masters
// of a deployment and a client that uses five could both win a majority. So a master votes only for clients that have
// the list in its record.
//
// Until a majority has been admitted with a list, a client admits a master only if all masters of the list allow it.
// A master allows it if it has shown the same list since the quarantine was first seen, if no client can write a record
// on it, or if it has been down for the length of a quarantine or since the client started. Once a majority has been
// admitted with a list, a different list on a minority costs only the votes of the minority.
//
// Masters may still be admitted with two lists if a client cannot reach the master that has the other list in its
// record, and a master of both lists has lost its record (verify/spec/lists.pml). But if clients waited for every
// master, one dead master could prevent the first start of a deployment.
//
// # Shards
//
// Names may be distributed over several shards, each with its own masters and records. A client with two shards and a
// client with three could look for the same name in different shards, and both could hold it. So a record also contains
// its shard and the number of shards, such as group=2/3, and a master votes only for clients with the shard in its
// record.
//
// That is not sufficient for new masters, because each of two such clients could write the first records in a different
// shard. So the first master of all shards is admitted only when every master of every shard has a record with its
// shard, in quarantine or not. If two clients disagree about the shard of a master, at most one of them sees the shard
// that it expects. Every later admission requires only that one master, in any shard, was admitted before with the same
// number of shards. So a shard that is down does not block the others, and a shard that has lost all its records can
// start again. A client that has seen no admitted master, but a record with another shard, writes no first record on
// any master. Otherwise this client could claim a shard that has just lost its records.
package admission

// Package admission decides which masters may vote. It is pure: no I/O, no clock, no lock. Package monitor is its loop.
//
// A master that restarts without its data could grant a name that is still held. So a master votes only with its
// admission record, a value stored on it. The record identifies the server, states that no earlier lock can still be
// valid there, and holds the numbers of its deployment. Each connection reads the record, and each vote is given only
// if it has not changed.
//
// A client cannot see whether a restarted server has all its data. So after every restart the master has no vote, and
// is considered to have lost its leases until it confirms them again ([Memory]). The exceptions are durable masters,
// and all masters if the restart guard is off.
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
//	Blocked, until it is fixed: the record cannot be read, names other masters, or has a later epoch;
//	repl-backlog-ttl is too short; the clock is more than 15 s off and a quarantine is needed.
//
// # The identity of a server
//
// The identity is run_id, master_replid2 and second_repl_offset. A restart changes the first. A promotion, after which
// the server may have another server's data, changes the others. Attaching a replica or a backup changes none of them.
// When a server frees its replication backlog, master_replid2 returns to zeros: it is the same server, and the record
// is rewritten without a quarantine. After repl-backlog-ttl, that would also hide a promotion. So a master whose
// repl-backlog-ttl is shorter than the max TTL has no vote, if CONFIG may be read. A replica has no vote; the pool
// refuses it.
//
// A durable master, which according to its operator persists every write before it replies, votes immediately after a
// restart. It is recognized by its old record, which contains the address. A promoted server is never taken for one,
// since a replica would carry that record too.
//
// # The numbers of the deployment
//
// The record holds the longest TTL that the master accepts (longest), and the length of a quarantine (quarantine).
// Together they are the max TTL of the deployment, which is a single number unless an operator is raising it. For
// the masters that vote, this always holds:
//
//	the longest TTL on any master <= the quarantine on every master
//
// Admin.RaiseMaxTTL first writes the quarantine to all masters. It continues only if all of them had it at the same
// time. To verify that, it reads every record again after the last write, and starts again if one has changed. Then
// it writes the longest TTL. To lower the max TTL, delete the records while no client runs.
//
// No write shortens a quarantine, and every write contains the longest one that its writer has read. Only RaiseMaxTTL
// gives a longer TTL to a master that votes. An admitted master gets the longest TTL of the voting masters that its
// writer has read since it first saw the quarantine. If the writer has read none, clients with different max TTLs may
// have begun on different masters at the same time. The longest TTL is then the one in a majority of the records.
// Otherwise one of these clients could allow long TTLs while the other has admitted a master with a short quarantine.
//
// This tolerates one master at a time that loses its data. If a majority loses its data, and a client that starts then
// has a shorter max TTL than the deployment, it cannot know how long a quarantine must last. Give all clients the
// same max TTL.
//
// # The quarantine
//
// A quarantine lasts for the largest of: the longest quarantine in any record that was read, the client's max TTL, and
// 30 s. A client that finds a shorter one in the record lengthens it. It begins at the later of the master's time and
// the latest clock among those that are at most 15 s off the median. It has ended when the earlier of the master's
// time and the median is past its end. So clocks that are set forward meanwhile do not shorten it.
//
// It is as long as every TTL of the deployment, so no lock that the master has lost is still valid when it ends. It is
// also at least two windows of ballots (skew.Window): the master may have accepted a ballot of 15 s ahead just
// before it lost its fences, and refuses one of exactly 15 s ago. Both are needed: verify/spec has a mutant of each.
//
// A client may end a quarantine if it has read the records of a quorum since it first saw the quarantine. If the max
// TTL was raised before the master lost its data, the records of that quorum show this. A master whose clock is more
// than 15 s off the median starts and ends no quarantine.
//
// # The list of masters
//
// The record contains the list of all masters, or both lists in a joint configuration. Clients that use three and five
// masters of one deployment could each find a majority. So a master votes only for clients that have the list of its
// record. A client begins with its list (admits masters before a majority has been admitted in it) when every master
// has shown that list since the quarantine began, or has been down for a quarantine or since the client started. Once
// a majority has been admitted in a list, a different list on a minority costs only the minority's votes.
//
// Two lists can both begin if a client cannot reach the master that would show it the other list, and a master in both
// has forgotten its record (verify/spec/lists.pml). But if clients waited for all, one dead master could stop a start.
//
// # Shards
//
// Names may be sharded over several shards of masters, each of which is a separate deployment. Two clients that use two
// and three shards would look for one name in different shards, and both could hold it. So a record also contains the
// number of its shard and of all shards, group=2/3, and a client that reads another shard on any of its masters wins no
// locks there.
//
// That is not sufficient on new masters, because two clients could each be the first in one shard. So shards begin
// once. The first master of all shards is admitted when every master of every shard has a record with its shard, in
// quarantine or not. If the shards of two clients contradict each other on some masters, only one of the clients can
// see that. Every later master needs only one master of any shard that was admitted before with the same number of
// shards: a shard that is down does not block the others, and a shard that has lost all its records begins again. A
// client that has seen no such master, but some master of another shard, writes no first record anywhere, because it
// could otherwise claim a shard that has just lost its records.
package admission

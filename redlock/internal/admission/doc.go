// Package admission decides which masters may vote. It is pure: no I/O, no clock, no lock. Package voters is the loop
// around it.
//
// A master that restarts without its data could grant a name that is still held. So a master votes only by its
// admission record, one value on it. The record says who the server is, that nothing from before can be alive there,
// and the numbers of its fleet. Each connection reads it, and each vote is given only if it is still the same.
//
// Nobody can see whether a server that was restarted has all its data. So every restart ends its vote, with its data or
// without, and what it has granted counts as lost there until it says again that it has it ([Memory]). A durable
// master is the exception.
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
//	Blocked, until somebody mends it: the record cannot be read, names another number of masters, or has
//	a later epoch; repl-backlog-ttl is too short; the clock is more than 15 s off and a quarantine is needed.
//
// # Who the server is
//
// Its identity is run_id, master_replid2 and second_repl_offset. A restart changes the first. A promotion, after
// which the server may have another's data, changes the others. Attaching a replica or a backup changes none of them.
// When a server frees its replication backlog, master_replid2 goes back to zeros: that is the same server, and the
// record is rewritten without quarantine. It would also hide a promotion, after repl-backlog-ttl. So a master whose
// repl-backlog-ttl is shorter than the guard time has no vote, if CONFIG may be read. A replica has no vote; the pool
// refuses it.
//
// A durable master, which its operator says remembers every write, votes at once after a restart. It is known by its
// old record, which has the address. A promoted server is never taken for one, since a replica would carry that
// record too.
//
// # The numbers of the fleet
//
// The record has the longest TTL that the master accepts, and how long a quarantine must last: longest and quarantine.
// Together they are the guard time of the fleet, which is one number while nobody raises it. Every record that is
// written has the largest of each that its writer has read anywhere, and the script never lowers one. At every time
// this holds:
//
//	the longest TTL on any master <= the quarantine on every master
//
// So the guard time is raised in two steps: the quarantine on all masters, and only then the longest TTL. It is
// lowered by admitting the masters anew with nobody running. A new fleet begins with the guard time of the program
// that begins it.
//
// # The quarantine
//
// It lasts for the largest of: the longest quarantine in any record that was read, the program's guard time, 30 s. A
// program that finds it shorter writes it longer. It begins at the later of the master's time and the latest clock
// among those that are not more than 15 s off the median, and it is over when the earlier of the master's time and
// the median say so. Then clocks that are set forward meanwhile do not shorten it.
//
// It is as long as every TTL of the deployment, so no lock that the master has forgotten is still valid when it ends.
// It is also at least two windows of ballots (scripts.Window): the master may have accepted a ballot of 15 s ahead just
// before it lost its fences, and refuses one of exactly 15 s ago. Both are needed: verify/spec has a mutant of each.
//
// A program may end it if it has read the records of a quorum since it first saw this quarantine. The guard time may
// have been raised before the master lost its data; that quorum knows of it. A master whose clock is more than 15 s
// off the median starts and ends no quarantine.
//
// # The number of masters
//
// The record has N, the number of masters of the set, in a joint configuration both. Two programs that name three and
// five masters of one fleet could both find a majority. So a program that has read another number in its own epoch
// admits nothing and wins nothing, until that record is gone or replaced by a quarantine.
//
// # Groups
//
// Names may be spread over several groups of masters, each a fleet of its own. Two programs that go by two and three
// groups would look for one name in different groups, and both could hold it. So a record also says which group of how
// many its master is, group=2/3, and a program that reads another group on any of its masters wins nothing there.
//
// That alone would not do on new masters: two programs could each be the first in one group. So groups begin once. The
// first voter of all groups is admitted when every master of every group was seen to name its group, in quarantine or
// not. Of two programs whose groups contradict each other on some masters, only one can see that. Every later voter
// needs only one master of any group that was admitted before under the same number: a group that is down keeps nobody
// from the others, and a group that has lost all its records begins again. A program that has seen none such, and some
// master of another group, writes no first record anywhere: else it could claim a group that has just lost its records.
package admission

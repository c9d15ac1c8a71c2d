// Package walkthroughs demonstrates the hazards of the protocol, each in a file in testdata. A file says what could
// go wrong and what must hold, and then shows a sequence of events, step by step. The walkthroughs are the shortest
// way to learn the protocol. Begin with H53 (a master restarts empty), H02 (a message arrives late), H61 (a machine
// freezes), H20 (a lock is lost and released), and H42 (waiting).
//
// The clients are the real library with the real pool; the masters are those of package redlocktest. Time is virtual.
// A test runs each walkthrough and compares the events with the file: go test ./verify/walkthroughs
//
// # Reading a walkthrough
//
// Each step is a line, followed by ---- and the events that it causes:
//
//	A locks orders
//	----
//	0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
//	0.102 A has orders until 9.998, token 0.100000
//
// Times are seconds since the walkthrough began. A message takes 1 ms each way, so the masters received at 0.101
// what A sent at 0.100, and A received the replies at 0.102. A line with an arrow shows a message and the reply of
// the masters that it names; a line that begins like "master 3 to B" is a wake-up. Messages that do not affect a
// lock, such as heartbeats, are omitted.
//
// A1 is the first lease of client A. wA1 is the ticket of its first waiter in the queues. A ballot is the masters'
// time in microseconds, so it is written like a time. An acquire reserves a range of ballots for local hand-offs
// among the goroutines of its client: the first ballot is the token, and the last becomes the fence. In a line of a
// master, "until" is followed by the time at which the lock expires there. In a line of a client it is followed by
// the end of the validity, which is a little earlier.
//
// A majority of the replies decides a call: with five masters, usually the third reply does. The call does not wait for
// the other replies, so a refused caller also sends those masters a release, in case they grant the lease.
//
// # Steps
//
//	masters 5 [fresh] [guard=1m]           the masters; fresh ones have not been admitted yet
//	client A B [ttl= guard= label= ...]   starts clients; masters=3 uses the first three only, without=4,5 cannot
//	                                       reach those, tries=3 bounds the tries, trace=hangs and backoff=hangs
//	A locks orders [ttl= minimum= within= tries= extension=off handoff=off] [again: a re-entry]
//	A tries orders; A unlocks orders; A extends orders; A gives up orders; A exports orders; B imports orders
//	A closes; A admits; A raises guard=5m; A dies                  [within=100ms] [cancelled]
//	wait 2s                                time passes
//	masters 1-3 stop, hang, resume, restart empty, restart with their data, lose orders, lose all keys, answer OOM,
//	    answer well, become a replica, become a master, have the fence N, have a foreign key, are 14s behind, are right
//	hold messages from A to 3              the network delays everything that A sends; answers from 3 to A; everything
//	let messages from A to 3 pass          new connections work; delayed messages are not delivered
//	deliver messages from A to 3           delayed messages arrive
//	cut A from 3; join A to 3              connections are lost with their messages; new ones can be made
//	lose wake-ups to A                     messages to waiters are lost
//	slow A to 3 by=100ms                   each message takes that long, one way
//	repeat acquire from A to 3             the last one arrives once more, on a separate connection
//	crowd 20                               this many clients wait for orders, and die
//	freeze A 4s [virtual=yes]              all timers stop while the scenario continues; virtual: A's machine is a
//	                                       virtual one, and only its wall clock shows the freeze afterwards
//	set wall clock of A back 1h            or forward
//	who holds orders; show masters; show queues; show A
//
// An action of a client, or a delivery, takes 10 ms; events on masters and on the network take no time.
//
// # Adding a walkthrough
//
// Write testdata/H999.txt with a few lines of comment and the steps, each followed by ---- and an empty line. Then
// run
//
//	go test ./verify/walkthroughs -run Walkthroughs/H999 -rewrite
//
// Read its output line by line, because the test compares with this output from then on. A walkthrough always fails
// if two clients hold a name at the same time, if a token is smaller than the previous token, or if a lock has no
// validity. Run the walkthrough 200 times, with GOMAXPROCS=1 and 2. If the output differs, two events happen at the
// same instant: put time between them.
//
// # Hazards without a walkthrough
//
//	H06  needs the channel rights of a real server
//	H60  needs the INFO rights of a real server
//	H69  needs real replication for backups and backlogs; a failback is in H57
//
// The tests of these hazards contain the ids in comments, as those of all hazards do. H65 and H86 show that the work
// of a script is bounded; a test of H65 shows that this work takes a real server at most 5 ms (the longest measured
// time was 1 ms). H61 simulates a freeze with clocks; a test of H76 stops a process with SIGSTOP. Two servers behind
// one name (H63) have no walkthrough, because they are not tolerated, as the documentation of package redlock says.
package walkthroughs

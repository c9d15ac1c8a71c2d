// Package walkthroughs demonstrates the hazards of the protocol, each in a file in testdata. A file says what could
// go wrong and what must hold, and then shows a sequence of events, step by step. The walkthroughs are the shortest
// way to learn the protocol. Start with H53 (a master restarts empty), H02 (a message arrives late), H61 (a machine
// freezes), H20 (masters lose a lock before it is extended), and H42 (waiting).
//
// The clients use the production library and pool; the masters are those of package redlocktest. Time is virtual. A
// test runs each walkthrough and compares the events with the file: go test ./verify/walkthroughs
//
// # Reading a walkthrough
//
// Each step is a line, followed by ---- and the events that it causes:
//
//	A locks orders
//	----
//	0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.098999 to 0.099031 -> granted
//	0.102 A has orders until 9.998, token 0.098999
//
// Times are seconds since the walkthrough began. A message takes 1 ms each way, so the masters received at 0.101
// what A sent at 0.100, and A received the replies at 0.102. A line with an arrow shows a message and the masters'
// reply; a line that begins like "master 3 to B" is a wake-up. Messages that do not affect a lock, such as heartbeats,
// are omitted.
//
// A1 is the first lease of client A. wA1 is the ticket of its first waiter in the queues. A ballot is the masters' time
// in microseconds, so it is written like a time; it is a little early, so that it is not later than a correct clock. An
// acquire reserves a range of ballots for local hand-offs among the goroutines of its client: the first ballot is the
// token, and the last becomes the fence. In a line of a master, "until" is followed by the time at which the lock
// expires on that master. In a line of a client, "until" is followed by the end of the validity, which is a little
// earlier.
//
// The replies of a majority decide a call: with five masters, usually the first three replies. The call does not wait
// for the other replies, so a refused client also sends a release to masters without a reply, in case they grant the
// lease.
//
// # Steps
//
//	masters 5 [fresh] [guard=1m]           creates the masters; fresh: not admitted yet; guard: max TTL
//	client A B [ttl= guard= label= ...]    starts clients; guard: max TTL; masters=3: configured with the first three
//	                                       masters only; without=4,5: cannot reach masters 4 and 5; tries=3: at most 3
//	                                       attempts; trace=hangs, backoff=hangs: the callback does not return
//	A locks orders [ttl= minimum= within= tries= extension=off handoff=off] [again]       again: a re-entry
//	A tries orders; A unlocks orders; A extends orders; A gives up orders; A exports orders; B imports orders
//	A closes; A admits; A raises guard=5m; A dies                  [within=100ms] [cancelled]
//	wait 2s                                time passes
//	masters 1-3 stop, hang, resume, restart empty, restart with their data, lose orders, lose all keys, answer OOM,
//	    answer well, become a replica, become a master, have the fence N, have a foreign key, are 14s behind, are right
//	hold messages from A to 3              the network holds back what A sends to master 3; also: hold answers from 3
//	                                       to A; hold everything from A to 3
//	let messages from A to 3 pass          new connections work; delayed messages are not delivered
//	deliver messages from A to 3           delayed messages arrive
//	cut A from 3                           connections are lost with their messages, and A cannot connect
//	join A to 3                            A can connect again, and receives wake-ups again
//	lose wake-ups to A                     messages to waiters are lost
//	slow A to 3 by=100ms                   each message takes 100 ms, one way
//	repeat acquire from A to 3             A's last acquire arrives again, on a separate connection
//	crowd 20                               20 dead clients are in the queues for orders
//	freeze A 4s [virtual=yes]              4 s pass, but timers do not notice; virtual: A runs in a virtual machine, and
//	                                       of its clocks only the wall clock shows the freeze afterwards
//	set wall clock of A back 1h            also: forward 1h
//	who holds orders; show masters; show queues; show A
//
// A step with an action of a client, or with a delivery, takes 10 ms; other steps on masters and the network take none.
//
// # Adding a walkthrough
//
// Write testdata/H999.txt with a few lines of comment and the steps, each followed by ---- and an empty line. Then
// run
//
//	go test ./verify/walkthroughs -run Walkthroughs/H999 -rewrite
//
// Read the new output in the file line by line, because from then on the test compares the events with this output. A
// walkthrough always fails if two clients hold a name at the same time, if a token is smaller than the previous token,
// or if an acquired lock has no validity left. Run the walkthrough 200 times, with GOMAXPROCS=1 and 2. If the output
// differs, two events happen at the same instant: insert a wait between them.
//
// # Hazards without a walkthrough
//
//	H06  needs a real server, for ACLs of channels
//	H60  needs a real server, for ACLs of INFO
//	H69  needs a real server, for backups and replication backlogs; H57 shows a failback
//
// The tests of all hazards, also of these, contain the ids in comments. H65 and H86 show that the work of a script is
// bounded; a test of H65 shows that this work takes a real server at most 5 ms (the longest measured time was 1 ms).
// H61 simulates a freeze with clocks; a test of H76 stops a process with SIGSTOP. Two servers behind one name (H63)
// have no walkthrough, because they are not tolerated, as the documentation of package redlock says.
package walkthroughs

// Package walkthroughs introduces the protocol. Each file in testdata says what could go wrong and what must hold, and
// then shows a sequence of events, message by message. Read them in this order:
//
//	1-lock.txt      how a lock is won, kept and released
//	2-late.txt      a message arrives late, or twice
//	3-queue.txt     clients and goroutines wait for one name: the queue, wake-ups and a local hand-off
//	4-repair.txt    masters lose a lock, and the holder restores it there
//	5-restart.txt   a master restarts empty, and its quarantine
//	6-holder.txt    the holder is cut off, or its machine is frozen
//	7-clock.txt     the clock of a master jumps
//	8-change.txt    the masters are replaced while a lock is held
//
// docs/protocol.md argues why this is safe. The clients use the production library and pool; the masters are those of
// package redlocktest. Time is virtual. A test runs each walkthrough and compares the events with the file: go test
// ./verify/walkthroughs
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
//	masters 5 [fresh]                      creates the masters; fresh: not admitted yet
//	client A B [masters=3] [without=4,5]   starts clients; masters=3: configured with the first three masters only;
//	                                       without=4,5: cannot reach masters 4 and 5
//	A locks orders [ttl=] [extension=off] [within=100ms]
//	A tries orders; A unlocks orders; A extends orders; A dies
//	A admits; A adds masters 4-6; A raises the epoch; A finishes the change; A keeps masters 4-6
//	wait 2s                                time passes
//	masters 1-3 stop, restart empty, lose orders, are 14s behind, are right
//	hold messages from A to 3              the network holds back what A sends to master 3; also: hold answers from 3
//	                                       to A; hold everything from A to 3
//	let messages from A to 3 pass          new connections work; delayed messages are not delivered
//	deliver messages from A to 3           delayed messages arrive
//	cut A from 3                           connections are lost with their messages, and A cannot connect
//	join A to 3                            A can connect again, and receives wake-ups again
//	lose wake-ups to A                     messages to waiters are lost
//	slow A to 3 by=100ms                   each message takes 100 ms, one way
//	repeat acquire from A to 3             A's last acquire arrives again, on a separate connection
//	freeze A 4s [virtual=yes]              4 s pass, but timers do not notice; virtual: A runs in a virtual machine, and
//	                                       of its clocks only the wall clock shows the freeze afterwards
//	who holds orders; show masters; show queues; show A
//
// A step with an action of a client, or with a delivery, takes 10 ms; other steps on masters and the network take none.
//
// # Changing a walkthrough
//
// A walkthrough is for readers; a claim about the library has its test in the package that it is about: see
// verify/hazards.md. Write the steps, each followed by ---- and an empty line. Then run
//
//	go test ./verify/walkthroughs -rewrite
//
// Read the difference line by line, because from then on the test compares the events with this output. A walkthrough
// always fails if two clients hold a name at the same time, if a token is smaller than the previous token, or if an
// acquired lock has no validity left. Run the walkthrough 200 times, with GOMAXPROCS=1 and 2. If the output differs,
// two events happen at the same instant: insert a wait between them.
package walkthroughs

// Package stories tells the hazards of the protocol, one file in testdata each: what could go wrong, what must hold,
// and then what happens, step by step. They are the shortest way to learn the protocol. Begin with H53 (a master
// restarts empty), H02 (a message comes late), H61 (a machine freezes), H20 (a lock is lost and given back), and H42
// (waiting).
//
// The programs are the real library over the real pool, the masters those of package redlocktest. Time is virtual.
// A test runs each story and compares what happens with what is written: go test ./redlock/stories
//
// # How to read a story
//
// Each step is a line, with ---- below it and then what happened:
//
//	A locks orders
//	----
//	0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
//	0.102 A has orders until 9.998, token 0.100000
//
// Times are seconds since the story began. A message takes 1 ms each way, so at 0.101 the masters got what A sent at
// 0.100, and A had the answers at 0.102. A line with an arrow is a message and the answer of the masters that it names;
// a line like "master 3 to B" is a hint. Messages that change no lock, such as heartbeats, are left out.
//
// A1 is the first grant of program A, wA1 its first waiter: the ticket with which it stands in the queues. A ballot is
// the masters' time in microseconds, so it is written like a time. An acquire reserves a block of them, for handing the
// lock on among the goroutines of its program; the first is the token, and the last becomes the fence. "Until" is when
// the masters forget the lock, or, by the word of a program, until when that relies on it: a little less.
//
// A call is decided by a majority: of five masters by the third answer. The others count as not heard by then, so a
// caller that was refused also sends them the release of what they may have granted.
//
// # The steps
//
//	masters 5 [fresh] [guard=1m]           the masters; fresh ones nobody has admitted yet
//	program A B [ttl= guard= label= ...]   starts programs; masters=3 names the first three only, without=4,5 cannot
//	                                       reach those, tries=3 bounds the tries, trace=hangs and backoff=hangs
//	A locks orders [ttl= minimum= within= tries= extension=off hand-on=off] [again: a re-entry]
//	A tries orders; A unlocks orders; A extends orders; A gives up orders; A exports orders; B imports orders
//	A closes; A admits; A raises guard=5m; A dies                  [within=100ms] [cancelled]
//	wait 2s                                time passes
//	masters 1-3 stop, hang, resume, restart empty, restart with their data, lose orders, lose all keys, answer OOM,
//	    answer well, become a replica, become a master, have the fence N, have a foreign key, are 14s behind, are right
//	hold messages from A to 3              what A sends from now on stays in the network; answers from 3 to A; everything
//	let messages from A to 3 pass          new connections work, what was held stays
//	deliver messages from A to 3           what was held arrives
//	cut A from 3; join A to 3              connections are lost with what is on them, and can be made again
//	lose hints to A; slow A to 3 by=100ms  hints do not arrive; each message takes so long, one way
//	repeat acquire from A to 3             the last one arrives once more, on a connection of its own
//	crowd 20                               so many programs ask for orders, and die
//	freeze A 4s [virtual=yes]              all timers stand still while the world goes on; virtual: A's machine is a
//	                                       virtual one, and only its wall clock shows it afterwards
//	set wall clock of A back 1h            or forward
//	who holds orders; show masters; show queues; show A
//
// What a program does, or a delivery, lasts 10 ms; what happens to masters and to the network takes no time.
//
// # How to add one
//
// Write testdata/H999.story with a few lines of comment and the steps, each with ---- and an empty line below it. Then
//
//	go test ./redlock/stories -run Stories/H999 -rewrite
//
// Read what it has written, line by line: that is the test from now on. Two programs that hold one name at one time, a
// token that is smaller than the last, and a lock without validity fail a story whatever is written. Run it 200 times,
// with GOMAXPROCS=1 and 2. If it is not the same each time, two things happen at one instant: put time between them.
//
// # Hazards without a story
//
//	H06  rights to channels are those of a real server: TestRealUserWithoutChannelRights
//	H60  so are rights to INFO: TestLeastRightsSuffice
//	H69  backups and backlogs are of real replication; a failback is in H57: TestHazardWhatForgetsNothingStopsNoVote
//
// H65 and H86 tell that the work of a script is bounded; that it takes a server 5 ms at the most is tested by
// TestHazardAReleaseBehindDeadWaitersIsQuick (1 ms was the most that was seen). H61 tells of a freeze by clocks; a
// process under SIGSTOP is in TestHazardAProcessThatWasStoppedSeesItsLossAtTheFirstLook. In H63, two servers behind
// one name are no story: that is not survived, and the documentation of package redlock says so.
package stories

// Command bench measures what a lock over a majority of masters costs: the latency of a lock+unlock pair for one
// caller, the throughput of many, and what one or two masters that hang, die or are slow add to it.
//
//	go run ./bench                        five redis-server or valkey-server processes that it starts and stops
//	go run ./bench -masters a:6379,b:6379,c:6379
//	                                      masters of yours; they get keys under a random prefix, removed at the end
//	go run ./bench -short                 a few seconds, for continuous integration
//	go run ./bench -json                  one JSON document on standard output instead of the table
//
// Where no server program is installed it takes in-memory masters over loopback, and says so: those figures describe
// the client alone.
//
// # How it measures
//
// Absolute figures say more about the machine than about the program. What is to be looked at are ratios: the library
// and the floor (package floor: the same scripts, nothing else) run in turns, in an order that rotates from round to
// round, and each round gives a ratio. What is printed is the median over the rounds, with the smallest and the largest.
//
// Every goroutine has names of its own, so nobody waits for a lock that is held. A run is warmed up by a fifth of its
// duration. Allocations are those of the whole process over a run, as are the client's processor times; both are left
// out where the masters are in the same process. The processor time of the masters is theirs by INFO.
//
// In the scenario "faults" one caller locks and unlocks while one or two of the five masters are stopped (SIGSTOP),
// killed (SIGKILL), or 50 ms away (a proxy with a delay); the time it takes to notice is part of the run. Each round
// measures healthy masters as well, and the ratio is to those. Slow masters are compared with healthy ones behind the
// same proxy without its delay, since the proxy takes processor time from everybody else.
//
// With one or two masters away a quorum is the third of four or of three answers, no longer the third of five, and
// the latest of three is later than the median of five. What that and a proxy's delay cost by themselves is shown by
// the rows of the floor: over four and over three masters ("absent"), and with slow ones. A ratio of the library is to
// be read beside the floor's.
//
// # Exit codes
//
//	0    measured
//	1    something failed; standard error says what
//	2    a flag is wrong; nothing was started
//	3    with -check: measured, and a target is not met
//	130  interrupted; servers that it started are stopped
package main

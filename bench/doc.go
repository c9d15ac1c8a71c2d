// Command bench measures what a lock over a majority of masters costs: on the machine that it runs on, next to a floor
// that does nothing else, and next to other libraries on the same work.
//
//	go run ./bench                        five redis-server or valkey-server processes that it starts and stops
//	go run ./bench -masters a:6379,b:6379,c:6379
//	                                      masters of yours; they get keys under a random prefix, removed at the end
//	go run ./bench -scenario all          everything, which takes many minutes
//	go run ./bench -short                 a few seconds, for continuous integration
//	go run ./bench -impl all              the peers side by side
//	go run ./bench -json                  one JSON document on standard output instead of the tables
//	go run ./bench -out run.json -html report.html
//	                                      keep the run, and draw it on a page that loads nothing
//	go run ./bench -compare old.json      what differs from a kept run by more than chance
//	go run ./bench -h                     all flags, scenarios and contenders
//
// Where no server program is installed it takes in-memory masters over loopback, and says so: those figures describe
// the client alone.
//
// # How it measures
//
// Absolute figures say more about the machine than about the program. What is to be looked at are ratios: the library
// and the others run in turns, in an order that rotates from round to round, and each round gives a ratio. What is
// printed is the median over the rounds, with the smallest and the largest. A ratio with "~" before it compares
// nothing: the rounds lie on both sides of 1.
//
// # Pairs
//
// Every goroutine has names of its own, so nobody waits for a lock that is held. A contender is opened for its run and
// closed after it, and what is left behind is counted then. A run is warmed up by a fifth of its duration.
// Allocations are those of the whole process over a run, as are the client's processor times; both are left out where
// the masters are in the same process. The processor time of the masters is theirs by INFO. Commands are those that
// the client sends, by the masters' count; what a script runs inside is not one.
//
// # Votes
//
// A run of its own, in which the library tells of each vote (redlock.Trace.Vote): how long each master takes to answer a
// lock, queues of the client included, and in what share of the locks its vote was the one that made the majority. A
// master that is seldom decisive is nearer than the majority, or farther; "behind" says which.
//
// # Held locks
//
// Each goroutine takes a lock and uses it: it extends it by hand, and where the contender has re-entry locks it once more
// and leaves again, timed apart. The library and redsync wait for a majority, redislock for its one server.
//
// # What is left behind
//
// After each scenario the keys under the prefixes of the contenders are counted on every master, a second after the last
// release at the most: those of locks, for each 10 000 locks that were held in it and ended, and all others, with their
// bytes by MEMORY USAGE and for how long they are kept. The library keeps a fence for each name. What names cost that are
// locked once each, "scale" tells.
//
// # Contention and split votes
//
// The clients are processes of their own: the program starts itself. They share the machine's clock, so the parent can
// put all their holds in one order; a hold that begins before the one before has ended is counted as a violation. They
// have done the same on another name before, for a fifth of the time. The
// ideal is the same work, as goroutines, on a sync.Mutex. A hand-off is the time from the beginning of an Unlock to
// the return of the Lock of another process that was waiting then, and is compared with the locks that nobody wants,
// taken by one of the processes before. A wait is overtaken by each hold that was asked for later and given earlier. A hold
// takes its time by a timer of the kernel: Go's own come up to a millisecond late where the process reads something meanwhile.
//
// Of processes that want one free name at one instant the time from the first request to the first hold is taken. It is
// compared with the locks of as many processes at one instant that each want a name of their own ("own names"), which have to
// wake up and to share the processors in the same way, and with locks that one process takes one after the other ("alone").
//
// # Links and scale
//
// With -rtt, and in the scenario "links", a process of its own stands before the masters and delays each way by half of
// the round trip, exact to some tens of microseconds where the machine has time. What the link then is, to a client that
// wakes up for each reply, a PING over it tells; it is measured beside each contender. "scale" holds locks in a process of its
// own: the lag of an extension is the time from when it is due, a third of the TTL after the round before, until a
// majority has confirmed it; memory is the heap's after collection, less what it was before.
//
// # Timelines
//
// A fault comes and goes while one caller works, over masters that each have a proxy before them: as long before it as
// in it, and twice as long after. The floors take no part, since they do not outlive a fault.
//
// # Faults
//
// One caller locks and unlocks while one or two of the five masters are stopped (SIGSTOP), killed (SIGKILL), or 50 ms away
// (a proxy in a process of its own with a delay); the time it takes to notice is part of the run. Each round measures
// healthy masters as well, and the ratio is to those.
//
// The masters and the proxies have one half of the processors meanwhile, and the client has the other (on Linux, with two
// processors or more): where they share them, which process the system puts where decides more than a fault does. A
// slow master is looked at once in 10 ms, so what it does after the others have answered is done in bursts: with a processor
// of its own it would be in nobody's way.
//
// All of it is measured twice: over the masters as they are, and, where -rtt asks for no distance, over a link of 2 ms round
// trip to each, with all processors for all.
//
// With one or two masters away a quorum is the third of four or of three answers, no longer the third of five, and
// the latest of three is later than the median of five. What that and slow masters cost by themselves is shown by
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

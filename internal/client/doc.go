// Package client is the lock on one set of masters. Package redlock is its API: it turns options into [Settings],
// chooses the client of a name if there are several shards ([Set]), traces calls, and turns each [Error] into a
// LockError. The simulator, and tests that need a clock, an observer or a shard of their own, pass the options of this
// package.
//
// # The parts of a client
//
//	monitor     which masters may vote: reads their records, ends quarantines; publishes a View
//	ballot      the masters' time, and tokens that no master has seen
//	round       one script sent to all masters, and the count of the votes
//	lease       what a round has won: validity, extension, repair, end, release
//	waitqueue   calls that wait, here and in the queues of the masters
//	events      the trace and the log, through one queue that never blocks a lock
//
// client.go builds and ends them. acquire.go takes a lock, lock.go is the lock, transfer.go moves it to another process
// or role. limits.go and repeat.go bound the wait. all.go and semaphore.go acquire several names, or one of several
// slots. health.go, inspect.go and journal.go are for people. masters.go, change.go and layout.go are for operators.
//
// # The path of a plain lock
//
// From Locker.Lock to the script and back, in order, for a free name and no options:
//
//	redlock/locker.go             Locker.Lock
//	redlock/request.go            Locker.request, request.lock, request.acquire
//	redlock/trace.go              begin, acquiring, traced         only call the next one if there is no trace
//	internal/client/config.go     Apply                            the settings of the call
//	internal/client/acquire.go    Client.Acquire, accepts, owned, grant
//	internal/waitqueue/local.go   Queue.join                       the contender of the name
//	internal/waitqueue/contend.go Queue.Lock, contention.next, contention.prepare
//	internal/lease/acquire.go     Manager.Acquire, prepare, newLease
//	internal/lease/limiter.go     limiter.enter                    not too many rounds at once
//	internal/round/round.go       Sender.New, Round.Init
//	internal/ballot/propose.go    Ballots.Propose                  the token
//	internal/scripts/encode.go    Encoder.Acquire                  the message
//	internal/round/round.go       Round.SendAll, Sender.Refusal
//	internal/transport            Transport.Send
//	internal/scripts/acquire.lua  the vote of one master
//	internal/round/round.go       Round.Reply, DecodeVote, Round.Record, Tally.Add
//	internal/lease/acquire.go     voteRecorder.OnVote, awaitQuorum, awaitDecision
//	internal/waitqueue/local.go   Queue.startHold
//	internal/lease/acquire.go     Hold.Start                       the lock is live
//	internal/waitqueue/local.go   Queue.leave
//	internal/client/acquire.go    stillGood                        the caller may have been paused
//
// What else a call can be plugs in at one place: a re-entry, a call that does not wait and one with tries in
// Client.grant; readers, writers and slots in the keys of the lock (scripts.Keys); a minimum hold in firstTerm; linger
// and hand-offs in the lease (linger.go) and the local queue; a joint configuration in quorum.Rule.
package client

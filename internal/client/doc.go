// Package client is the lock on one set of masters. Package redlock is its API: it declares the options, chooses the
// client of a name if there are several shards ([Set]), traces calls, and turns each [Error] into a LockError. The
// simulator, and tests that need a clock, an observer or a shard of their own, pass the options of this package.
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
// client.go builds and ends them, set.go joins the clients of one Locker, config.go has the settings. acquire.go takes
// a lock, lock.go is the lock, transfer.go moves it to another process or role. try.go, repeat.go and limits.go are for
// calls that do not wait, wait by polling, or wait for a limited time; all.go, semaphore.go and shares.go acquire
// several names, one of several slots, or the lock of a reader or writer. view.go acts on changes of the masters'
// states. errors.go, events.go, journal.go, health.go, masters.go and inspect.go say what happens; operate.go,
// change.go, configuration.go, layout.go and release.go are for operators; testing.go is for tests.
//
// # The path of a plain lock
//
// From Locker.Lock to the script and back, in order, for a free name and no options. The list has the functions that
// decide or change something; a hundred small ones, which read a field or append a word, are left out, and so are those
// that undo a count at the end (End, leave, limiter.leave).
//
//	redlock/locker.go              Locker.Lock
//	redlock/request.go             request, lock
//	internal/client/client.go      Client.Begin                    counts the call, for Shutdown
//	redlock/request.go             acquire                         the options; at the end the Lock, or the error
//	internal/client/acquire.go     CheckName, Client.Acquire
//	internal/client/client.go      enter                           counts the call, for Close
//	internal/client/acquire.go     grant
//	internal/scripts/keys.go       KeysOf                          the keys, and by them the scripts
//	internal/waitqueue/contend.go  Queue.Lock
//	internal/waitqueue/contend.go  join                            the contender of the name
//	internal/waitqueue/contend.go  contend, next, prepare
//	internal/monitor/api.go        Ready                           waits if a quorum may vote soon
//	internal/lease/acquire.go      Manager.Acquire, send           a lease with a new id
//	internal/lease/limiter.go      enter                           not too many rounds at once
//	internal/round/round.go        Sender.New
//	internal/ballot/propose.go     Ballots.Propose                 the token
//	internal/ballot/propose.go     Term                            when the masters free the name
//	internal/scripts/vote.go       Encoder.Acquire                 the message
//	internal/round/round.go        Round.SendAll, Sender.Refusal   not to a master that does not vote
//	internal/transport             Transport.Send                  its package says how a call goes out and back
//	internal/lease/masters.go      sent.touchAll                   which masters may have the lease
//	internal/scripts/acquire.lua   the vote of one master
//	internal/round/round.go        Round.Reply
//	internal/scripts/vote.go       DecodeVote
//	internal/round/round.go        Round.Record                    the bookkeeping of a vote ends before Done
//	internal/quorum/tally.go       Tally.Add                       the count, which Tally.Verdict decides
//	internal/lease/acquire.go      Lease.OnVote
//	internal/lease/masters.go      recordVoteLocked                which masters have the lease
//	internal/lease/acquire.go      awaitQuorum, awaitDecision      the call continues; the validity
//	internal/waitqueue/contend.go  startHold                       this Locker has the name
//	internal/lease/acquire.go      Hold.Start, beginLocked         the lock is live, and its extensions are planned
//	internal/waitqueue/contend.go  leave
//	internal/client/acquire.go     stillGood                       the caller may have been paused
//
// # What else a call can be
//
// Each of the following plugs in at one place. Where that place is on the path, it is a function with nothing special
// to do for a plain lock:
//
//	redlock/trace.go               traced                          tracing: posts the event of the call
//	internal/client/set.go         Set.Of                          shards: the client of the name
//	internal/client/config.go      Apply                           options: the settings and terms of the call
//	internal/client/acquire.go     owned                           re-entry: the lock that the context owns
//	internal/client/limits.go      limited                         limits of the wait
//	internal/waitqueue/linger.go   takeOver                        linger: a lease that nobody holds
//	internal/lease/linger.go       announceLinger                  linger: the mark on the masters
//	internal/lease/lease.go        leaseTTL, fromGrant             a minimum hold is a longer term
//	internal/lease/inbox.go        identify                        readers and writers: an id with the role
//
// A reader or writer is acquired by a method of its own (shares.go), waits in waitqueue.Shares instead of the Queue,
// and has other keys, which choose the scripts (scripts.Keys). A slot of a semaphore is a plain lock (semaphore.go),
// and LockAll acquires plain locks (all.go). A re-entry, a call that does not wait and one with tries part in grant. A
// joint configuration is a quorum.Rule, and a value is a field of the lease, which extensions and repairs send.
//
// # Where to add something
//
//   - An option of a call: redlock/options.go, a field of [Settings] with its default and check (config.go; checkUnits
//     for a duration), or of lease.Terms if the lease needs it. Say in LockAll (all.go; Hold.ApplyTerms, if the option
//     must not apply before all names are locked), Semaphore (semaphore.go), RWLock (shares.go), Lead and Hold.Reenter
//     whether it applies. An example, its row in redlock/options_test.go, and the table in docs/guide.md.
//   - A script: in internal/scripts X.lua, its SHA and All in script.go, encode.go, decode.go (vote.go has acquires and
//     extensions), doc.go, its reference in package reference with its case in Eval, and "Calls" in docs/protocol.md.
//     A command that no script has used before also goes into rights.go, docs/run.md and deploy/redis/users.acl.
//   - A reason for the end of a lock: the table in internal/lease/end.go, and redlock/errors.go (the error, outcomes,
//     the words in Outcome). The table of errors in docs/guide.md; redlockprom/collector.go if the lock is lost. The
//     uses of ErrMaxHold are the places where a reason may need a text or an effect of its own.
//   - A command: in cmd/redlock a file (commands.go has those about all masters), rootCommand in main.go (and ofLocks,
//     if it has exit statuses of its own), doc.go, redlock.1, which "redlock man" prints, docs/run.md, and the tables
//     in usage_test.go and, if it asks for confirmation, approve_test.go.
package client

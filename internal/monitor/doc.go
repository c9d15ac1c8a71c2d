// Package monitor tracks which masters may vote, and admits masters. Package admission makes the decisions, and package
// monitor adds the goroutine, the connections and the clock.
//
//	Watch ───────► event ─┐                         ┌─► View, which rounds use
//	answers to steps ─────┼─► facts ──► admission ──┤
//	doubts of rounds ─────┘   (one goroutine)       └─► the next steps, sent through the pool
//
// # From a restart to the next vote
//
// Any client that may write records (Settings.Observer is false) decides each step by itself, and the master's admit
// script accepts the step only if what the client has read is still true. What a master that was restarted passes
// through, in order:
//
//	internal/transport            master.run            a new session, whose event has the new identity
//	internal/monitor/monitor.go   recordEvent           forgets that the record was read; Memory.See counts a new
//	                                                    incarnation, with which the leases count as lost
//	internal/monitor/monitor.go   decide, deployment    each event and answer, and the clock, lead here
//	internal/admission/judge.go   Judge, judgeUp        the record must be read
//	internal/monitor/steps.go     makeMove, sendStep    sends the step; recordAnswer, Fact.Learn
//	internal/admission/judge.go   judgeUp, start        the record is of the server before the restart
//	internal/scripts/admit.lua    step start            a record that admits nobody: the quarantine begins
//	internal/admission/judge.go   quarantine            until the clocks are past its end
//	internal/admission/list.go    seen                  a quorum of the records was read again
//	internal/scripts/admit.lua    step end              the record admits the master
//	internal/admission/judge.go   vote                  the phase is Voting
//	internal/monitor/monitor.go   publish               a View, with which rounds send acquires to the master
//
// A durable master that kept its record goes from judgeUp (Fact.remembers) to the vote, by the step now.
package monitor

// Package model searches every possible sequence of events, within small bounds, of clients and masters with the
// masters' decision function ([reference.State.Eval]). The in-memory masters use the same function, and tests compare
// it with the Lua scripts.
//
// There are three masters, two clients and one name. A client begins an attempt, receives replies, holds when two
// masters have granted, and unlocks or gives up at any time. It then sends the release to every master on which its
// acquire may have had an effect. Requests are read in any order, at any time or never; replies come in any order or
// are lost. Bounds limit how many attempts a client makes, how often a request is read twice, how often a master loses
// its data, and whether time passes. Time passes in one step that is longer than the max TTL: earlier attempts and
// holds have then ended for their clients, keys have expired on the masters, and quarantines end.
//
// In every state:
//
//   - at most one client holds;
//   - each hold has a larger token than all before it;
//   - if a master has read all messages of an attempt that has ended, it does not have its lock.
//
// The search is breadth first, so it finds a shortest counterexample, which it describes in words. Ballots are chosen
// in every possible order, including equal ones.
//
// Three reductions keep the search small. States are identified if they differ only in the names of masters or clients,
// or in the values of ballots but not in their order. Masters read only when a client needs the reply (see successors
// for why that is enough). Messages that can no longer have an effect are dropped.
//
// # Searches
//
// No violation was found in these searches, on two cores shared with other work. "read twice" is the number of such
// requests; time passes at any moment, or only after a master has lost its data:
//
//	attempts  read twice  forget  time passes   states    steps
//	1 + 1     3           0       -                351        4 053
//	1 + 1     1           1       any moment     2 319       17 698
//	2 + 1     0           0       any moment    55 563    2 081 187
//	2 + 1     0           0       -             11 951      156 811   releases without a ballot, see below
//	2 + 2     0           0       -            114 962   12 934 684
//	2 + 2     0           0       any moment   249 193   26 829 942
//	2 + 1     1           0       -             92 381    7 027 082
//	2 + 1     0           1       behind it    473 636   15 234 040
//	2 + 2     1           0       -            457 696  105 398 464
//	2 + 2     0           1       behind it  1 286 242   86 368 940
//
// A release carries the ballot of its acquire, and the two arrive in any order. If a release follows its acquire on one
// connection it carries none ([Bounds.OwnConnection]). The first four searches run with the tests in six seconds, the
// others in half an hour with
//
//	go test ./verify/model -run TestFull -v -timeout 0 -args -full
//
// which then searches two attempts of each client with a repeat, a master that loses its data, and time that passes at
// any moment. That search has not been completed.
//
// # Readers and writers
//
// [SearchShares] does the same for locks with readers, with the same decision function: at most three clients with one
// attempt each, and every order of their ballots. In every state:
//
//   - a writer that holds is alone;
//   - the token of a writer is larger than all before it, that of a reader larger than those of all writers before it;
//   - if a master has read all messages of an attempt that has ended, it has no share of it.
//
// The tests search each pair of a reader or a writer with a request that is read twice, with a master that loses its
// data, and with releases without a ballot; and a writer with two readers, and two writers with a reader. Together
// these are 770 000 states, in 16 s on a busy machine. Downgrades are not included.
//
// # Limits of the model
//
// The model has no waiters, extension, repair, re-entry or import; the simulator covers them. A client that receives a
// refusal sends no release to that master. If the network repeated the request after the refusal, it could be granted
// for one TTL ([Bounds.RepeatRefused] shows the sequence). No connection of this library repeats a request that was
// answered.
package model

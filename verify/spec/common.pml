/* common.pml: definitions that all models of the lock share. Each model includes this file after its own switches.
 * README.md describes how to run the models.
 *
 * LEASE. A client tries to get a lease on a majority of the masters, holds the lease, may extend it, and ends it. At most
 * LEASES leases exist at the same time. When no trace of an ended lease is left, its slot is used for the next lease, so
 * a search covers any number of leases.
 *
 * TIME is relative to the present, so that the number of states is finite and runs have any length. A tick increases each
 * age, and decreases each remaining time and each ballot. NOW is the masters' time; a ballot that is too old to have an
 * effect is 0.
 *
 * CLOCKS. Only the rate of a client's clock relative to the masters' clocks matters. Each client's clock is as slow as the
 * drift allows (DRIFT per TTL): with a faster clock a hold ends earlier, and a hold may end at any time anyway. A client's
 * guess of the masters' time may be wrong.
 *
 * MESSAGES are bits: one for each kind, master and lease. Messages arrive late, in any order, twice, or never. A reply is
 * recorded when the master sends it; the client uses the reply later or never, which covers late and lost replies. A
 * message that the master would refuse now stays in flight, and may arrive again: a refusal changes no state.
 *
 * JUMPS. With -DJUMPS, clocks of masters jump. A lease has two deadlines: one by its master's own clock, which counts from
 * the execution of a message, and one in ballots, which counts from the sending of the message. Another lease replaces it
 * only if both have passed. redlock.pml and admission.pml have a clock for each master. hold.pml, import.pml, joint.pml and
 * shares.pml have none: there the clocks of all masters may jump at any time, so the first deadline may always have passed,
 * and only the second one counts. (If the first one is later, the master refuses more messages, as if they were late.) An
 * expired lease stays on its master until another lease replaces it. Until then it may be extended, as on a master whose
 * clock is behind. A clock that is ahead by more than a window is a master that forgets (-DFORGET): meanwhile the master
 * refuses all ballots, and afterwards it refuses the stamp of its old record.
 *
 * STEPS. Each step is a STEP: a condition, a text for the trace, and an effect. SPIN reports each STEP that is never taken.
 */
#ifndef WITHOUT
#define WITHOUT 0
#endif
/* The rules that -DWITHOUT=... removes. configurations.txt lists the mutants and the violations that SPIN finds. */
#define FENCE 1
#define WINDOW 2
#define WINDOW_EDGE 3
#define LIMIT_AHEAD 4
#define FENCE_KEPT 5
#define QUARANTINE 6
#define STAMP 7
#define RECORD_IN_SCRIPT 8
#define VALIDITY_START 9
#define DRIFT_ALLOWANCE 10
#define RECHECK 11
#define ROLL_BACK 12
#define UNKNOWN_OUTCOMES 13
#define STOP_BEFORE_RELEASE 14
#define TOMBSTONE 15
#define RANGE_END 16
#define NEW_LEASE_ID 17
#define ABSOLUTE_DEPTH 18
#define CONFIGURED_QUORUM 19
#define MAJORITY_FIRST 20
#define ROUND_STAMP 21
#define BOTH_MAJORITIES 22
#define EPOCH_CHECK 23
#define FINAL_CHECK 24
#define SETTLE_TIME 25
#define OLD_MAJORITY 26
#define CONFIRMED_JOINT 27
#define VOTING_REPAIR 28
#define VOTING_IMPORT 29
#define VOTING_DOWNGRADE 30
#define IMPORT_NEW_ID 31
#define IMPORT_REPLACES 32
#define EXPORT_ENDS_FIRST 33
#define IMPORT_ROUND 34
#define IMPORT_START 35
#define IMPORT_PRESENT 36
#define IMPORT_ABOVE 37
#define IMPORT_MAJORITY 38
#define MIN_HOLD_KEPT 39
#define MIN_HOLD_TTL 40
#define MIN_HOLD_DRIFT 41
#define MAX_HOLD_EXTENSION 42
#define WRITER_ALONE 43
#define READERS_WAIT 44
#define READERS_FENCE 45
#define READER_TOMBSTONE 46
#define DOWNGRADE_SHARE 47
#define DOWNGRADE_EXTENDS 48
#define DOWNGRADE_ATOMIC 49
#define DOWNGRADE_RELEASES 51
#define DOWNGRADE_BALLOTS 52
#define TOKEN_IS_FENCE 53
#define QUORUM_READ 55
#define LARGEST_NUMBERS 56
#define QUARANTINE_WANTED 57
#define RAISE_ORDER 58
#define RAISE_LOOKS 59
#define RECORD_COMPARE 60
#define AGREEMENT 61
#define TTL_LIMIT 62
#define LINGER_VALIDITY 63
#define LINGER_TOKEN 64
#define MASTER_LIST 65
#define FIRST_RECORDS 66
#define SHORT_OUTAGE 67
#define ABORT_QUARANTINE 68
#define ABORT_CLOSES 69
#define ABORT_SEEN 70
#define LAYOUT_IN_TEXT 71
#define SHOWN_NOW 72
#define NO_MEMORY 73
#define ALL_MUST_SHOW 74
#define OTHER_LAYOUT 75
#define FRESH_RECORDS 76
#define GIVEN_UP_CLOSED 77
#define CLOSED_FIRST 78
#define READ_AGAIN 79
#define LOOK_LAST 80
#define NEW_CLOSED 81
#define BALLOT_DEADLINE 82
#define OWN_CLOCK 83
#define JUMP_QUARANTINE 84
#define LOW_BALLOT 85
#define HIGH_DEADLINE 86
#define LATER_BEGIN 87
#define EARLIER_END 88
#define EARLIEST_END 89
#define MIN_HOLD_GRANT 90
#define EXTEND_PERMITTED 91

#ifndef TTL
#define TTL 2               /* how long a master keeps a lease */
#endif
#ifndef LONGER
#define LONGER 0            /* TTL of lease 1 minus TTL (redlock.pml) */
#endif
#ifndef W
#define W 2                 /* the window: how far a ballot may be from a master's time */
#endif
#ifndef Q
#define Q (TTL + LONGER > 2 * W -> TTL + LONGER : 2 * W)  /* the quarantine: at least a TTL, and at least two windows */
#endif
#define DRIFT 1
#define NOW (W + TTL + LONGER + 2)
#define LIMIT (WITHOUT == DRIFT_ALLOWANCE -> TTL + DRIFT : TTL) /* age of a lease at which its validity ends */
#define LAST_AGE (WITHOUT == RECHECK -> LIMIT : LIMIT - 1)      /* largest age at which an attempt may succeed */

/* For models without clocks of masters. REMAINS is the time for which a lease lasts when its master executes a message of
 * this age; PASSED is whether another lease may replace a lease with this remaining time. With -DERROR=1, ballots are ahead
 * of the masters' time by a tick, so deadlines in ballots pass a tick early. */
#ifndef ERROR
#define ERROR 0
#endif
#ifdef JUMPS
#define REMAINS(ttl, age) ((ttl) > (age) + ERROR -> (ttl) - (age) - ERROR : 0)
#define STAYS true          /* an expired lease stays on its master */
#define PASSED(rest) ((rest) == 0 || WITHOUT == BALLOT_DEADLINE)
#else
#define REMAINS(ttl, age) (ttl)
#define STAYS false
#define PASSED(rest) false
#endif

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define RAISE(fence, ballot) fence = MAX(fence, ballot)
#define PAST(time, ballot) ((ballot) + W < (time) || ((ballot) + W == (time) && WITHOUT != WINDOW_EDGE))
#define RECENT(time, ballot) (WITHOUT == WINDOW || !PAST(time, ballot))
#define FENCE_EXPIRES(time, fence) (PAST(time, fence) || (WITHOUT == FENCE_KEPT && (fence) < (time)))

/* HAS, PUT and TAKE read, set and clear the bit of lease l in a field of master t. */
#define HAS(t, field, l) ((m[t].field >> (l)) & 1)
#define PUT(t, field, l) m[t].field = m[t].field | (1 << (l))
#define TAKE(t, field, l) m[t].field = m[t].field & ~(1 << (l))

/* CLAIM asserts a condition. SPIN's message about a violation contains the name of the claim. */
#define CLAIM(name, condition) assert((condition) || name)

/* Each model defines normalize, which runs after every step. It removes messages and values that can no longer have an
 * effect, and sorts the masters: fewer states, the same behaviour. With -DNAMES the masters keep their order, for a trace
 * that is easier to read. */
#define STEP(condition, words, effect) d_step { condition -> printf words; effect; normalize() }
#define SWAP(field, a, b) k = m[a].field; m[a].field = m[b].field; m[b].field = k

mtype = { IDLE, ACQUIRING, HOLDING, LINGERING, LOST, EXPORTED, DOWNGRADED, ENDED };
#ifdef BREADTH                /* breadth-first search, which finds the shortest trace, supports no hidden variables */
#define hidden
#endif
hidden byte i, j;             /* scratch */
hidden short k;               /* scratch, also for negative numbers */
/* Names of claims; these variables are never set. NO_TOKENS and NO_ORPHANS disable a claim, so that SPIN finds a violation
 * of another claim first. */
hidden byte exclusion, alone, downgrade_gap, min_hold, max_hold, once;
#ifdef NO_TOKENS
#define tokens true
#else
hidden byte tokens;
#endif
#ifdef NO_ORPHANS
#define orphans true
#else
hidden byte orphans;
#endif

/* import.pml: export and import of a lease. Read common.pml first.
 *
 * Lease 0 is exported. Its handle is delivered twice: leases 1 and 2 import lease 0, simultaneously or one after the other,
 * in any number of rounds. Lease 3 (-DLEASES=4) belongs to another client. All leases are extended and repaired while they
 * are held. Messages of the exporter (acquire, extension, repairs) may still arrive after the export. By then, masters may
 * have forgotten the lease (-DFORGET).
 *
 * MESSAGES of an ended lease are dropped: they could only leave orphans (redlock.pml checks orphans). Messages of the
 * exporter stay while the handle may be imported. The keys of an ended lease stay until a release, which may arrive at any
 * time, or until they expire.
 *
 * JUMPS (-DJUMPS) are described in common.pml.
 *
 * CLAIMS   exclusion (after the export, the exporter no longer holds the lock)
 *          tokens    with -DBALLOTS=1; without ballots, masters of the model accept more acquires than real masters
 *          once      at most one import of a handle succeeds
 */
#ifndef LEASES
#define LEASES 3
#endif
#ifndef BALLOTS
#define BALLOTS 0
#endif
#define W BALLOTS
#include "common.pml"
#ifndef ONCE
#define once true
#endif
#define N 3
#define IMPORTS(l) ((l) == 1 || (l) == 2)
#define ID(l) ((WITHOUT == IMPORT_NEW_ID && IMPORTS(l)) -> 1 : (l) + 1)

typedef Master {
  byte lock, ttl, quarantine, fence;
  byte acquire, extend, repair; /* messages in flight; an import is an acquire that replaces the exporter's lease */
  byte granted;               /* replies to the current round */
  byte confirmed, missing     /* replies to the last extension */
}
typedef Lease {
  mtype phase;
  byte age, extended;         /* age: since the attempt or the last confirmed extension. extended: since the last extension */
  byte ballot, repair_ballot
}
Master m[N];
Lease lease[LEASES];
bool imported;                /* an import of the handle has succeeded */
byte top;                     /* largest token of all holds so far */

#define COUNT(field, l) (HAS(0, field, l) + HAS(1, field, l) + HAS(2, field, l))
#define ON(t, l) (m[t].lock == ID(l))
#define FREE(t) (m[t].lock == 0 || PASSED(m[t].ttl))
#define LIVE(l) (lease[l].phase == ACQUIRING || lease[l].phase == HOLDING)
#define NOWHERE(l) (!ON(0, l) && !ON(1, l) && !ON(2, l))
#define NOTHING_IN_FLIGHT(l) (COUNT(acquire, l) + COUNT(repair, l) == 0)
#define BALLOT_OK(t, l) (!BALLOTS || \
  ((lease[l].ballot > m[t].fence || (WITHOUT == IMPORT_ABOVE && IMPORTS(l))) && RECENT(NOW, lease[l].ballot)))
#define REPAIR_OK(t, l) (!BALLOTS || (lease[l].repair_ballot > m[t].fence && RECENT(NOW, lease[l].repair_ballot)))
/* A handle contains the largest ballot of the exporter, and the ballots of an import are above this ballot. This has a
 * limit (-DAHEAD): the handle does not contain the ballot of a repair that is ahead of the present. */
#define ABOVE_HANDLE(l, b) (!BALLOTS || !IMPORTS(l) || WITHOUT == IMPORT_ABOVE || \
  ((b) > lease[0].ballot && ((b) > lease[0].repair_ballot || lease[0].repair_ballot > NOW)))
#define REPLACEABLE(t, l) (ON(t, l) || ON(t, 0) || (WITHOUT == IMPORT_REPLACES && IMPORTS(m[t].lock - 1)) || \
  (WITHOUT == IMPORT_PRESENT && FREE(t)))
#define VOTES_FOR(t, l) (m[t].quarantine == 0 || (WITHOUT == VOTING_IMPORT && IMPORTS(l)))
#define GRANTS(t, l) (VOTES_FOR(t, l) && \
  (IMPORTS(l) -> REPLACEABLE(t, l) && BALLOT_OK(t, l) : ON(t, l) || (FREE(t) && BALLOT_OK(t, l))))
#define QUORUM(l) ((WITHOUT == IMPORT_MAJORITY && IMPORTS(l)) -> 1 : 2)
#define REPAIRABLE(t, l) (lease[l].phase == HOLDING && \
  (WITHOUT == MAJORITY_FIRST -> !ON(t, l) : HAS(t, missing, l) && COUNT(confirmed, l) >= 2))

inline drop_lock(t) { m[t].lock = 0; m[t].ttl = 0 }
inline forget_replies(l) { for (k : 0 .. N-1) { TAKE(k, granted, l); TAKE(k, confirmed, l); TAKE(k, missing, l) } }
inline end(l) {
  forget_replies(l);
  for (k : 0 .. N-1) { TAKE(k, acquire, l); TAKE(k, extend, l); TAKE(k, repair, l) }
  lease[l].phase = ENDED; lease[l].age = 0; lease[l].extended = 0
}
inline start(b) {             /* an import may start further rounds, with larger ballots; votes of earlier rounds do not count */
  if :: WITHOUT == IMPORT_ROUND && lease[l].phase == ACQUIRING -> skip :: else -> forget_replies(l) fi;
  lease[l].phase = ACQUIRING; lease[l].ballot = BALLOTS * (b);
  lease[l].age = (WITHOUT == IMPORT_START && IMPORTS(l) -> lease[0].age : 0);
  for (i : 0 .. N-1) { if :: VOTES_FOR(i, l) -> PUT(i, acquire, l) :: else fi }
}
inline win() {
  for (j : 0 .. LEASES-1) {
    CLAIM(exclusion, j == l || !(lease[j].phase == HOLDING ||
      (j == 0 && WITHOUT == EXPORT_ENDS_FIRST && lease[0].phase == EXPORTED && lease[0].age < TTL)))
  }
  CLAIM(once, !IMPORTS(l) || !imported);
  imported = imported || IMPORTS(l);
  lease[l].phase = HOLDING; forget_replies(l);
  for (k : 0 .. N-1) { TAKE(k, acquire, l) }
  if :: WITHOUT == VALIDITY_START && IMPORTS(l) -> lease[l].age = 0 :: else fi;
  CLAIM(tokens, !BALLOTS || lease[l].ballot > top);
  top = lease[l].ballot
}
inline send_extension() {
  for (i : 0 .. N-1) { TAKE(i, confirmed, l); TAKE(i, missing, l); PUT(i, extend, l) }
  lease[l].extended = 0
}
inline send_repair(ahead) {
  PUT(t, repair, l); TAKE(t, missing, l); lease[l].repair_ballot = BALLOTS * MAX(NOW + ahead, lease[l].ballot + 1)
}
inline execute_acquire() {
  if
  :: ON(t, l) && !IMPORTS(l) -> skip
  :: else ->
    m[t].ttl = MAX((ON(t, l) -> m[t].ttl : 0), (STAYS && lease[l].phase != ACQUIRING -> 0 : REMAINS(TTL, lease[l].age)));
    m[t].lock = ID(l); RAISE(m[t].fence, lease[l].ballot)
  fi;
  if :: lease[l].phase == ACQUIRING -> PUT(t, granted, l) :: else fi
}
inline execute_extension() {
  TAKE(t, extend, l);
  if
  :: ON(t, l) ->
    m[t].ttl = MAX(m[t].ttl, REMAINS(TTL, (lease[l].phase == HOLDING -> lease[l].extended : TTL)));
    if
    :: lease[l].phase == HOLDING ->
      PUT(t, confirmed, l);
      if :: COUNT(confirmed, l) >= 2 && lease[l].extended <= lease[l].age -> lease[l].age = lease[l].extended :: else fi
    :: else
    fi
  :: !ON(t, l) && lease[l].phase == HOLDING -> PUT(t, missing, l)
  :: else
  fi
}
inline execute_repair() { m[t].ttl = MAX((ON(t, l) -> m[t].ttl : 0), REMAINS(TTL, TTL)); m[t].lock = ID(l); RAISE(m[t].fence, lease[l].repair_ballot) }
inline forget(t) {            /* messages in flight contain the stamp of the old record, so they are dropped */
  drop_lock(t); m[t].fence = 0; m[t].acquire = 0; m[t].extend = 0;
  if :: WITHOUT != ROUND_STAMP -> m[t].missing = 0; m[t].repair = 0 :: else fi;
  if :: WITHOUT != QUARANTINE -> m[t].quarantine = Q :: else fi
}
inline tick() {
  for (i : 0 .. N-1) {
    if :: m[i].ttl > 0 -> m[i].ttl--; if :: m[i].ttl == 0 && !STAYS -> drop_lock(i) :: else fi :: else fi;
    if :: m[i].quarantine > 0 -> m[i].quarantine-- :: else fi;
    if :: m[i].fence > 0 -> m[i].fence--; if :: FENCE_EXPIRES(NOW, m[i].fence) -> m[i].fence = 0 :: else fi :: else fi
  }
  for (j : 0 .. LEASES-1) {
    if
    :: LIVE(j) || (j == 0 && lease[j].phase == EXPORTED && lease[j].age < TTL) ->
      lease[j].age++;
      if :: lease[j].phase == HOLDING && lease[j].extended < TTL -> lease[j].extended++ :: else fi;
      if
      :: lease[j].age >= TTL && !(IMPORTS(j) && lease[j].phase == ACQUIRING) && lease[j].phase != EXPORTED -> end(j)
      :: lease[j].age > TTL -> lease[j].age = TTL
      :: else
      fi
    :: else
    fi;
    if :: lease[j].ballot > 0 -> lease[j].ballot-- :: else fi;
    if :: lease[j].repair_ballot > 0 -> lease[j].repair_ballot-- :: else fi
  }
  if :: top > 0 -> top-- :: else fi
}

#define KEY(t) (m[t].lock | (m[t].ttl << 3) | (m[t].quarantine << 5) | (m[t].acquire << 7) | (m[t].extend << 11) | \
  (m[t].repair << 15) | (m[t].granted << 19) | (m[t].confirmed << 23))
#define SORT(a, b) if :: KEY(a) > KEY(b) -> SWAP(lock, a, b); SWAP(ttl, a, b); SWAP(quarantine, a, b); SWAP(acquire, a, b); \
  SWAP(extend, a, b); SWAP(repair, a, b); SWAP(granted, a, b); SWAP(confirmed, a, b); SWAP(missing, a, b); SWAP(fence, a, b) :: else fi
inline normalize() {
  for (j : 0 .. LEASES-1) {
    for (i : 0 .. N-1) {      /* drop messages that can no longer have an effect */
      if :: STAYS && ON(i, j) && m[i].ttl == 0 && !LIVE(j) && lease[j].phase != EXPORTED -> drop_lock(i) :: else fi;
      if :: lease[j].phase == EXPORTED && HAS(i, extend, j) && !ON(i, j) -> TAKE(i, extend, j) :: else fi;
      if
      :: BALLOTS && HAS(i, acquire, j) && !ON(i, j) && WITHOUT != IMPORT_ABOVE &&
        (lease[j].ballot <= m[i].fence || PAST(NOW, lease[j].ballot)) -> TAKE(i, acquire, j)
      :: else
      fi;
      if
      :: BALLOTS && HAS(i, repair, j) && (lease[j].repair_ballot <= m[i].fence || PAST(NOW, lease[j].repair_ballot)) -> TAKE(i, repair, j)
      :: else
      fi
    }
    if :: lease[j].phase == ENDED && NOWHERE(j) -> lease[j].phase = IDLE :: else fi;
    if :: !LIVE(j) && lease[j].phase != EXPORTED -> lease[j].ballot = 0; lease[j].repair_ballot = 0 :: else fi;
    if :: PAST(NOW - 1, lease[j].repair_ballot) -> lease[j].repair_ballot = 0 :: else fi;
    if :: (lease[j].phase == HOLDING || lease[j].phase == EXPORTED) && PAST(NOW - 1, lease[j].ballot) -> lease[j].ballot = 0 :: else fi
  }
  if
  :: lease[0].phase == EXPORTED && NOWHERE(0) && NOTHING_IN_FLIGHT(0) && lease[1].phase != ACQUIRING &&
    lease[2].phase != ACQUIRING -> end(0)
  :: else
  fi;
  if :: lease[0].phase != EXPORTED && lease[1].phase != HOLDING && lease[2].phase != HOLDING -> imported = 0 :: else fi;
  if :: top + W + TTL < NOW -> top = 0 :: else fi;
#ifndef NAMES
  SORT(0, 1); SORT(1, 2); SORT(0, 1);
#endif
  i = 0; j = 0; k = 0
}

#define MAY_START(l) (IMPORTS(l) -> \
  lease[0].phase == EXPORTED && (lease[l].phase == IDLE || lease[l].phase == ACQUIRING) && (l == 1 || lease[1].phase != IDLE) : \
  lease[l].phase == IDLE)

proctype Client(byte l) {
  do
  :: STEP(MAY_START(l) && ABOVE_HANDLE(l, NOW), ("lease %d: acquire or import\n", l), start(NOW))
#if BALLOTS
  :: STEP(MAY_START(l) && ABOVE_HANDLE(l, NOW + 1), ("lease %d: acquire or import, ballot +1\n", l), start(NOW + 1))
#endif
  :: STEP(lease[l].phase == ACQUIRING && COUNT(granted, l) >= QUORUM(l) && lease[l].age < TTL, ("lease %d: held\n", l), win())
  :: STEP(LIVE(l), ("lease %d: ended\n", l), end(l))
  :: STEP(lease[l].phase == HOLDING, ("lease %d: extensions sent\n", l), send_extension())
  :: STEP(l == 0 && lease[l].phase == HOLDING, ("lease %d: exported\n", l),
    lease[l].phase = EXPORTED; lease[l].extended = 0; forget_replies(l))
  :: STEP(l == 0 && lease[l].phase == EXPORTED && lease[1].phase != ACQUIRING && lease[2].phase != ACQUIRING,
    ("the handle of lease %d is given up\n", l), end(l))
  od
}
proctype Link(byte t; byte l) {
  do
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d\n", t, l), execute_acquire(); TAKE(t, acquire, l))
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l) && !HAS(t, granted, l), ("master %d grants lease %d, not the last time\n", t, l),
    execute_acquire())
  :: STEP(HAS(t, extend, l), ("master %d: extension of lease %d\n", t, l), execute_extension())
#ifdef JUMPS
  :: STEP(HAS(t, extend, l) && ON(t, l) && PASSED(m[t].ttl) && lease[l].phase == HOLDING, ("master %d misses lease %d\n", t, l),
    TAKE(t, extend, l); PUT(t, missing, l))
#endif
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent\n", t, l), send_repair(0))
#ifdef AHEAD
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent, ballot +1\n", t, l), send_repair(1))
#endif
  :: STEP(HAS(t, repair, l) && (ON(t, l) || FREE(t)) && REPAIR_OK(t, l), ("master %d: lease %d repaired\n", t, l),
    execute_repair(); TAKE(t, repair, l))
  :: STEP(HAS(t, repair, l) && FREE(t) && REPAIR_OK(t, l), ("master %d: lease %d repaired, not the last time\n", t, l),
    execute_repair())
  :: STEP(ON(t, l) && lease[l].phase == ENDED, ("master %d: release of lease %d\n", t, l), drop_lock(t))
  od
}
#ifdef FORGET
proctype Faults(byte t) { do :: STEP(true, ("master %d forgets\n", t), forget(t)) od }
#endif
proctype Clock() { do :: STEP(true, ("one tick\n"), tick()) od }
init {
  atomic {
    for (j : 0 .. LEASES-1) { lease[j].phase = IDLE }
    run Clock();
#ifdef FORGET
    run Faults(0); run Faults(1); run Faults(2);
#endif
    for (j : 0 .. LEASES-1) { run Client(j); run Link(0, j); run Link(1, j); run Link(2, j) }
  }
}

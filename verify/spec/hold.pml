/* hold.pml: the minimum and the maximum of a hold. Read common.pml first.
 *
 * MIN HOLD. The name stays locked until MIN after the first master granted the lease, whatever the client does. An acquire
 * or an extension requests the TTL or the rest of MIN, whichever is longer. A release contains the time for which masters
 * keep the lease: a kept lease is unlocked, and its extensions are not confirmed. The client counts MIN from the success of
 * its attempt, which is later than the first grant, and adds the drift.
 *
 * MAX HOLD. The client ends its hold at MAX_HOLD after the success of its attempt, even if extensions are confirmed.
 *
 * JUMPS (-DJUMPS: see common.pml). The deadline in ballots counts from the call of the attempt, and the masters may grant
 * the lease much later. So an acquire requests a deadline that is later by the longest attempt. A master that keeps a
 * released lease shortens this deadline, too.
 *
 * This model has no ballots: its masters accept more acquires than real masters, and a late acquire may leave an orphan
 * (redlock.pml checks ballots).
 *
 * CLAIMS   exclusion
 *          min_hold   no lease is held before the min hold of the previous lease has ended
 *          max_hold   no lease is held for longer than MAX_HOLD
 */
#define W 0
#ifndef MIN
#define MIN 3
#endif
#ifndef MAX_HOLD
#define MAX_HOLD 4
#endif
#ifndef Q
#define Q (MIN + DRIFT)       /* the quarantine is at least the max TTL, and so at least the TTL of every acquire */
#endif
#ifndef LEASES
#define LEASES 2
#endif
#include "common.pml"
#define N 3
#define ID(l) ((l) + 1)

typedef Master {
  byte lock, ttl, quarantine;
  bool kept;                  /* the lease was released, and is kept for the rest of its min hold */
  byte acquire, extend, repair, release; /* messages in flight */
  byte granted, confirmed, missing       /* replies */
}
typedef Lease {
  mtype phase;
  byte age, extended;         /* age: since the attempt or the last confirmed extension. extended: since the last extension */
  byte held;                  /* time since the success of the attempt */
  bool on_a_master;           /* a master has granted the current attempt */
  byte first;                 /* time since the first grant of the current attempt */
  byte rest                   /* rest of the min hold, as in the releases */
}
Master m[N];
Lease lease[LEASES];
byte min_left;                /* rest of the min hold of the last hold */
byte held_for;                /* time since the start of the last hold */

#define COUNT(field, l) (HAS(0, field, l) + HAS(1, field, l) + HAS(2, field, l))
#define CLEAR(field, l) TAKE(0, field, l); TAKE(1, field, l); TAKE(2, field, l)
#define SEND_ALL(field, l) PUT(0, field, l); PUT(1, field, l); PUT(2, field, l)
#define ON(t, l) (m[t].lock == ID(l))
#define CONFIRMS(t, l) (ON(t, l) && !m[t].kept)
#define NO_TRACE(l) (!ON(0, l) && !ON(1, l) && !ON(2, l) && \
  COUNT(acquire, l) + COUNT(release, l) + COUNT(extend, l) + COUNT(repair, l) == 0)
/* The client's clock may be fast by DRIFT, so the client may measure lease[l].held + DRIFT. */
#define TARGET (MIN + (WITHOUT == MIN_HOLD_DRIFT -> 0 : DRIFT))
#define REST(l) (lease[l].phase == ACQUIRING -> TARGET : \
  (TARGET > lease[l].held + DRIFT -> TARGET - lease[l].held - DRIFT : 0))
/* An acquire requests its deadline in ballots before the time of the grant is known. */
#define LONGEST_ATTEMPT (!STAYS || WITHOUT == MIN_HOLD_GRANT -> 0 : LAST_AGE)
#define FIRST_TTL MAX(TTL, (WITHOUT == MIN_HOLD_TTL -> 0 : TARGET + LONGEST_ATTEMPT))
#define ASKED(l, age) (WITHOUT == MIN_HOLD_TTL -> REMAINS(TTL, age) : MAX(REMAINS(TTL, age), REST(l)))
#define FREE(t) (m[t].lock == 0 || PASSED(m[t].ttl))
#define GRANTS(t, l) (m[t].quarantine == 0 && (ON(t, l) || FREE(t)))
#define REPAIRABLE(t, l) (lease[l].phase == HOLDING && COUNT(confirmed, l) >= 2 && HAS(t, missing, l))

inline drop_lock(t) { m[t].lock = 0; m[t].ttl = 0; m[t].kept = 0 }
inline stop_extending(l) { CLEAR(extend, l); CLEAR(confirmed, l); CLEAR(missing, l); lease[l].extended = LIMIT }
inline start() {
  lease[l].phase = ACQUIRING; lease[l].age = 0; lease[l].held = 0; lease[l].first = 0; lease[l].on_a_master = 0; lease[l].rest = 0;
  for (i : 0 .. N-1) { if :: m[i].quarantine == 0 -> PUT(i, acquire, l) :: else fi }
}
inline win() {
  for (j : 0 .. LEASES-1) { CLAIM(exclusion, j == l || lease[j].phase != HOLDING) }
  CLAIM(min_hold, min_left == 0);
  lease[l].phase = HOLDING; CLEAR(granted, l);
  min_left = (MIN > lease[l].first -> MIN - lease[l].first : 0); held_for = 0;
  lease[l].first = 0; lease[l].on_a_master = 0
}
inline end() {                /* a lease that was never held has no min hold */
  lease[l].rest = (lease[l].phase == ACQUIRING || WITHOUT == MIN_HOLD_KEPT -> 0 : REST(l));
  for (i : 0 .. N-1) { if :: ON(i, l) || HAS(i, acquire, l) || HAS(i, repair, l) -> PUT(i, release, l) :: else fi }
  lease[l].phase = ENDED; lease[l].age = LIMIT; CLEAR(granted, l); stop_extending(l);
  lease[l].held = 0; lease[l].first = 0; lease[l].on_a_master = 0
}
inline execute_acquire() {
  if
  :: ON(t, l) -> skip
  :: else ->
    m[t].lock = ID(l); m[t].kept = 0;
    m[t].ttl = (STAYS && lease[l].phase != ACQUIRING -> 0 : REMAINS(FIRST_TTL, lease[l].age))
  fi;
  if :: lease[l].phase == ACQUIRING -> PUT(t, granted, l); lease[l].on_a_master = 1 :: else fi
}
inline execute_release() {
  if
  :: !ON(t, l) -> skip
  :: ON(t, l) && lease[l].rest == 0 -> drop_lock(t)
  :: else -> m[t].kept = 1; if :: m[t].ttl > lease[l].rest -> m[t].ttl = lease[l].rest :: else fi
  fi
}
inline confirm() {
  TAKE(t, extend, l); m[t].ttl = MAX(m[t].ttl, ASKED(l, lease[l].extended)); PUT(t, confirmed, l);
  if
  :: COUNT(confirmed, l) >= 2 && lease[l].extended < lease[l].age ->
    lease[l].age = lease[l].extended; if :: WITHOUT == MAX_HOLD_EXTENSION -> lease[l].held = 0 :: else fi
  :: else
  fi
}
inline execute_repair() { m[t].lock = ID(l); m[t].kept = 0; m[t].ttl = MAX(m[t].ttl, ASKED(l, TTL)) }
inline restart() {
  drop_lock(t); m[t].acquire = 0; m[t].extend = 0; m[t].repair = 0; m[t].missing = 0; m[t].quarantine = Q
}
inline tick() {
  for (i : 0 .. N-1) {
    if :: m[i].ttl > 0 -> m[i].ttl--; if :: m[i].ttl == 0 && !STAYS -> drop_lock(i) :: else fi :: else fi;
    if :: m[i].quarantine > 0 -> m[i].quarantine-- :: else fi
  }
  if :: held_for <= MAX_HOLD -> held_for++ :: else fi;
  for (j : 0 .. LEASES-1) {
    if :: lease[j].age < LIMIT -> lease[j].age++ :: else fi;
    if :: lease[j].extended < LIMIT -> lease[j].extended++ :: else fi;
    if :: lease[j].on_a_master && lease[j].first < MIN -> lease[j].first++ :: else fi;
    if :: STAYS && lease[j].phase == ENDED && lease[j].rest > 0 -> lease[j].rest-- :: else fi;
    if
    :: lease[j].phase == HOLDING || lease[j].phase == LOST ->
      if :: lease[j].held <= MAX_HOLD -> lease[j].held++ :: else fi
    :: else
    fi;
    if
    :: lease[j].phase == HOLDING && (lease[j].age >= LIMIT || lease[j].held >= MAX_HOLD) -> lease[j].phase = LOST; stop_extending(j)
    :: else
    fi;
    CLAIM(max_hold, lease[j].phase != HOLDING || held_for < MAX_HOLD)
  }
  if :: min_left > 0 -> min_left-- :: else fi
}
#define KEY(t) (m[t].lock | (m[t].ttl << 3) | (m[t].quarantine << 6) | (m[t].acquire << 9) | (m[t].granted << 12) | \
  (m[t].release << 15) | (m[t].extend << 18) | (m[t].confirmed << 21) | (m[t].repair << 24))
#define SORT(a, b) if :: KEY(a) > KEY(b) -> SWAP(lock, a, b); SWAP(ttl, a, b); SWAP(kept, a, b); SWAP(quarantine, a, b); \
  SWAP(acquire, a, b); SWAP(release, a, b); SWAP(extend, a, b); SWAP(repair, a, b); SWAP(granted, a, b); SWAP(confirmed, a, b); \
  SWAP(missing, a, b) :: else fi
inline normalize() {
  for (j : 0 .. LEASES-1) {
    for (i : 0 .. N-1) {
      if :: HAS(i, release, j) && !ON(i, j) && !HAS(i, acquire, j) && !HAS(i, repair, j) -> TAKE(i, release, j) :: else fi;
      if :: STAYS && ON(i, j) && m[i].ttl == 0 && lease[j].phase != HOLDING -> drop_lock(i) :: else fi
    }
    if
    :: (lease[j].phase == ENDED || lease[j].phase == LOST) && NO_TRACE(j) ->
      lease[j].phase = IDLE; lease[j].held = 0; lease[j].first = 0; lease[j].on_a_master = 0; lease[j].rest = 0; lease[j].age = LIMIT
    :: else
    fi
  }
  if :: lease[0].phase != HOLDING && lease[LEASES-1].phase != HOLDING -> held_for = 0 :: else fi;
#ifndef NAMES
  SORT(0, 1); SORT(1, 2); SORT(0, 1);
#endif
  i = 0; j = 0; k = 0
}

proctype Client(byte l) {
  do
  :: STEP(lease[l].phase == IDLE && (l == 0 || lease[l-1].phase != IDLE), ("lease %d: acquire\n", l), start())
  :: STEP(lease[l].phase == ACQUIRING && COUNT(granted, l) >= 2 && lease[l].age <= LAST_AGE, ("lease %d: held\n", l), win())
  :: STEP(lease[l].phase == ACQUIRING || lease[l].phase == HOLDING || lease[l].phase == LOST, ("lease %d: ended, releases sent\n", l), end())
  :: STEP(lease[l].phase == HOLDING && lease[l].extended > 0, ("lease %d: extensions sent\n", l),
    SEND_ALL(extend, l); CLEAR(confirmed, l); CLEAR(missing, l); lease[l].extended = 0)
  od
}
proctype Link(byte t; byte l) {
  do
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d\n", t, l), execute_acquire(); TAKE(t, acquire, l))
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d\n", t, l), execute_release(); TAKE(t, release, l))
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d, not the last time\n", t, l), execute_release())
  :: STEP(HAS(t, extend, l) && CONFIRMS(t, l), ("master %d confirms lease %d\n", t, l), confirm())
  :: STEP(HAS(t, extend, l) && (!CONFIRMS(t, l) || PASSED(m[t].ttl)), ("master %d misses lease %d\n", t, l), TAKE(t, extend, l); PUT(t, missing, l))
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent\n", t, l), PUT(t, repair, l); TAKE(t, missing, l))
  :: STEP(HAS(t, repair, l) && (ON(t, l) || FREE(t)) && lease[l].phase == HOLDING, ("master %d: lease %d repaired\n", t, l),
    execute_repair(); TAKE(t, repair, l))
  od
}
#ifdef FORGET
proctype Faults(byte t) { do :: STEP(true, ("master %d restarts empty\n", t), restart()) od }
#endif
proctype Clock() { do :: STEP(true, ("one tick\n"), tick()) od }
init {
  atomic {
    for (j : 0 .. LEASES-1) { lease[j].phase = IDLE; lease[j].age = LIMIT; lease[j].extended = LIMIT }
    run Clock();
#ifdef FORGET
    run Faults(0); run Faults(1); run Faults(2);
#endif
    for (j : 0 .. LEASES-1) { run Client(j); run Link(0, j); run Link(1, j); run Link(2, j) }
  }
}

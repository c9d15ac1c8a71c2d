/* redlock.pml: the plain lock on three masters. Read common.pml first.
 *
 * CLAIMS
 *   exclusion  at most one lease is held: a majority has granted it, and by its client's clock its validity has not ended
 *   tokens     each hold, also after a local hand-off, has a larger token than all earlier holds
 *   orphans    a master that has executed all messages of an ended lease does not have that lease
 *
 * NOT MODELLED: waiters and wake-ups (they only cause attempts); the early end of a hold when too many masters have lost
 * its lease; a minimum of remaining validity. (A hold may end at any time, so no claim needs the last two rules.)
 *
 * JUMPS
 * With -DJUMPS=n, clocks jump at most n times. At any time, the clock of one master may jump, if the clocks of the other
 * masters are right. It jumps forward by at most a window, back by at most BACK ticks (W), or so far ahead that the master's
 * keys expire. Where the window is 1 tick, a master that is ahead by a window refuses all ballots until its clock jumps back.
 *
 * A lease has two deadlines: one by its master's own clock, and one in ballots, which its client computes. Another lease
 * replaces it only if the own clock is past the first, and the first ballot of the other lease is past the second. A request
 * without a ballot uses the first alone. A key lasts for longer than any attempt. A master that is ahead by more than a window
 * is in quarantine until its clock has no longer been ahead for the length of a quarantine.
 *
 * A client reads two or three clocks, of which one may be wrong. Its ballot is at most the time of a right clock, so it is
 * guessed as without jumps. Its deadline is at least the time of a right clock plus the TTL, less the error LATE (1 tick).
 * Without jumps, the deadline in ballots only refuses more acquires, as if they were late, so it is left out then.
 *
 * SWITCHES
 *   -DLEASES=n    number of simultaneous leases (2)                 -DAHEAD=n  largest error of a guessed time (0; the smallest is -1)
 *   -DEXTEND      extensions and repairs                            -DSKEW=1   the clock of master 2 is ahead by one tick
 *   -DLONGER=n    the TTL of lease 1 is longer by n
 *   -DRANGE=1     a token range: one local hand-off for each lease  -DFIFO     a release follows its acquire on one connection
 *   -DLINGER=n    the first n leases may linger after the unlock, without extensions, and be taken over (with -DRANGE=1)
 *   -DJUMPS=n     clocks of masters jump
 *   -DFORGET      masters restart empty   -DRESTART  masters also restart with their data   -DFLUSH  masters are also flushed
 */
#ifndef LEASES
#define LEASES 2
#endif
#ifndef RANGE
#define RANGE 0
#endif
#ifndef AHEAD
#define AHEAD (0 - RANGE)
#endif
#ifndef SKEW
#define SKEW 0
#endif
#include "common.pml"
#define MORE(l) ((l) == 1 -> LONGER : 0)
#define LIMIT_OF(l) (LIMIT + MORE(l))
#ifdef FIFO
#define BALLOT_IN_RELEASE false
#else
#define BALLOT_IN_RELEASE (WITHOUT != TOMBSTONE)
#endif
#define N 3
#ifndef BACK
#define BACK W
#endif
#ifndef LATE
#define LATE 1
#endif
#define FAR (W + 1)         /* how far a clock is ahead, if the master's keys have expired because of that */
#ifdef JUMPS
#define TIME(t) (NOW + m[t].off)
#define EXPIRED(t, b) ((m[t].ttl <= m[t].off || WITHOUT == OWN_CLOCK) && ((b) > m[t].until || WITHOUT == BALLOT_DEADLINE))
#define LEFT(t) (m[t].ttl > m[t].off)                       /* by the master's own clock, the lease has not expired */
#define WRONG(t) (m[t].off != 0)
#define LASTS(t, l, of) m[t].ttl = m[t].off + TTL + MORE(l); m[t].until = of
#define PROLONG(t, l, of) m[t].ttl = MAX(m[t].ttl, m[t].off + TTL + MORE(l)); RAISE(m[t].until, of)
/* An extension is refused if both deadlines have passed. Its client's time is its new deadline less the TTL. */
#define COUNTS(t, l) (LEFT(t) || lease[l].extension <= m[t].until + TTL + MORE(l))
#define OFF_KEY(t) (m[t].off + BACK + (m[t].until << 4))
#define TTL_KEY(t) (m[t].ttl + BACK)
#define SWAP_CLOCKS(a, b) SWAP(off, a, b); SWAP(until, a, b);
#else
#define TIME(t) (NOW + ((t) == 2 -> SKEW : 0))
#define EXPIRED(t, b) false
#define LASTS(t, l, of) m[t].ttl = TTL + MORE(l)
#define PROLONG(t, l, of) LASTS(t, l, of)
#define COUNTS(t, l) true
#define SWAP_CLOCKS(a, b)
#endif
#ifndef JUMPS
#define TTL_KEY(t) m[t].ttl
#endif
#define FREE(t, b) (m[t].lock == 0 || EXPIRED(t, b))
#define ID(l) (WITHOUT == NEW_LEASE_ID && (l) <= 1 -> 1 : (l) + 1)

typedef Master {
  byte lock;                  /* id of the lease that this master has; 0: the name is free */
#ifdef JUMPS
  short off;                  /* how far the master's clock is ahead */
  short ttl;                  /* remaining time of the lease plus off: when the clock jumps, only off changes */
  byte until;                 /* deadline of the lease in ballots */
#else
  byte ttl;                   /* remaining time of the lease */
#endif
  bool repaired;              /* the lease was written by a repair, so its ballot is not that of the acquire */
  byte depth;                 /* only without ABSOLUTE_DEPTH */
  byte fence;                 /* largest ballot of the acquires, repairs and releases that this master has accepted */
  byte quarantine;            /* remaining time of the quarantine; 0: this master votes */
  byte acquire, release, extend, repair, unlock; /* messages in flight to this master */
  byte granted;               /* replies: this master granted the acquire of a lease that is still ACQUIRING */
  byte confirmed, missing     /* replies to the last extension */
}
typedef Lease {
  mtype phase;
  byte age;                   /* since the attempt began, or since the last confirmed extension was sent */
  byte ballot;                /* its first ballot, which is its token; its last ballot is ballot + RANGE */
  byte handoffs;
  byte extended;              /* since the last extension was sent */
  byte repair_ballot;         /* of its last repair */
#ifdef JUMPS
  byte deadline, extension, repair;  /* in ballots: as in its acquires, in its last extensions, in its last repair */
#endif
  bool unlocked               /* only without ABSOLUTE_DEPTH: the inner lock was released */
}
Master m[N];
Lease lease[LEASES];
#ifdef JUMPS
byte jumps = JUMPS;           /* jumps that may still happen */
#endif
byte top;                     /* largest token of all holds so far */

#define LAST(l) (WITHOUT == RANGE_END -> lease[l].ballot : lease[l].ballot + RANGE)
#define COUNT(field, l) (HAS(0, field, l) + HAS(1, field, l) + HAS(2, field, l))
#define CLEAR(field, l) TAKE(0, field, l); TAKE(1, field, l); TAKE(2, field, l)
#define SEND_ALL(field, l) PUT(0, field, l); PUT(1, field, l); PUT(2, field, l)
#define QUORUM (WITHOUT == CONFIGURED_QUORUM -> 1 : 2)
#define ON(t, l) (m[t].lock == ID(l))
#define IN_FLIGHT(t, l) (HAS(t, acquire, l) || HAS(t, repair, l))
#define NO_TRACE(l) (!ON(0, l) && !ON(1, l) && !ON(2, l) && COUNT(acquire, l) + COUNT(release, l) + COUNT(extend, l) + \
  COUNT(repair, l) + COUNT(unlock, l) == 0)

/* The checks of the acquire script, for the ballots a to z. A single ballot may be ahead if the fence is ahead, too. */
#define ABOVE(t, a) (WITHOUT == FENCE || (a) > m[t].fence)
#define NOT_AHEAD(t, a, z) (WITHOUT == LIMIT_AHEAD || (z) <= ((a) == (z) -> MAX(TIME(t), m[t].fence) : TIME(t)) + W)
#define ACCEPTS(t, a, z) (ABOVE(t, a) && RECENT(TIME(t), a) && NOT_AHEAD(t, a, z))
#ifdef JUMPS
#define REFUSED_FOREVER(t, a) (!(ABOVE(t, a) && RECENT(NOW - BACK, a)))
#else
#define REFUSED_FOREVER(t, a) (!(ABOVE(t, a) && RECENT(TIME(t), a)))
#endif

#define GRANTS(t, l) (m[t].quarantine == 0 && \
  ((ON(t, l) && !m[t].repaired) || (FREE(t, lease[l].ballot) && ACCEPTS(t, lease[l].ballot, LAST(l)))))
#define TAKES_REPAIR(t, l) ((ON(t, l) || FREE(t, lease[l].repair_ballot)) && ACCEPTS(t, lease[l].repair_ballot, lease[l].repair_ballot))
/* A repair needs the reply "missing" in the last round, and confirmations of the lease by a majority in that round. */
#define REPAIRABLE(t, l) ((lease[l].phase == HOLDING || (WITHOUT == STOP_BEFORE_RELEASE && lease[l].phase == ENDED)) && \
  (WITHOUT == MAJORITY_FIRST -> !ON(t, l) : COUNT(confirmed, l) >= QUORUM && HAS(t, missing, l)))

#ifdef JUMPS
inline drop_lock(t) { m[t].lock = 0; m[t].ttl = 0; m[t].until = 0; m[t].repaired = 0; m[t].depth = 0 }
/* The smallest deadline that a client may compute now. With HIGH_DEADLINE it uses the smallest of two clocks. */
#define LOWEST(a) MIN_OF(m[0].off, MIN_OF(m[1].off, m[2].off))
#define MIN_OF(a, b) ((a) < (b) -> (a) : (b))
#define DEADLINE(l) (NOW + TTL + MORE(l) - LATE + (WITHOUT == HIGH_DEADLINE -> LOWEST(0) : 0))
#define NOTE(field, l) lease[l].field = DEADLINE(l)
#else
inline drop_lock(t) { m[t].lock = 0; m[t].ttl = 0; m[t].repaired = 0; m[t].depth = 0 }
#define NOTE(field, l) skip
#endif
inline stop_extending(l) {
  if
  :: WITHOUT == STOP_BEFORE_RELEASE && lease[l].phase == ENDED -> skip
  :: else -> CLEAR(extend, l); CLEAR(confirmed, l); CLEAR(missing, l)
  fi;
  lease[l].extended = LIMIT_OF(l); lease[l].handoffs = 0; lease[l].unlocked = 0
}

/* ---- what a client does with a lease ---- */
inline start(b) {             /* acquires are sent to the masters that vote */
  lease[l].phase = ACQUIRING; lease[l].age = 0; lease[l].ballot = b; NOTE(deadline, l);
  for (i : 0 .. N-1) { if :: m[i].quarantine == 0 -> PUT(i, acquire, l) :: else fi }
}
inline take_token() {         /* checks and records the token of a new hold */
  CLAIM(tokens, lease[l].ballot + lease[l].handoffs > top);
  top = lease[l].ballot + lease[l].handoffs
}
inline win() {
  for (j : 0 .. LEASES-1) { CLAIM(exclusion, j == l || lease[j].phase != HOLDING) }
  lease[l].phase = HOLDING; CLEAR(granted, l); take_token();
  if :: WITHOUT == VALIDITY_START -> lease[l].age = 0 :: else fi
}
inline send_extension() {
  SEND_ALL(extend, l); CLEAR(confirmed, l); CLEAR(missing, l); lease[l].extended = 0; NOTE(extension, l)
}
inline send_repair(ahead) {   /* to a master that lacks the lease; with a new ballot above those of the lease */
  PUT(t, repair, l); TAKE(t, missing, l); lease[l].repair_ballot = MAX(NOW + ahead, LAST(l) + 1); NOTE(repair, l)
}
inline end() {                /* sends a release to each master that has the lease or may still get it */
  for (i : 0 .. N-1) {
    if
    :: WITHOUT == ROLL_BACK && lease[l].phase == ACQUIRING -> skip
    :: WITHOUT == UNKNOWN_OUTCOMES && lease[l].phase == ACQUIRING && !HAS(i, granted, l) -> skip
    :: else -> if :: ON(i, l) || IN_FLIGHT(i, l) -> PUT(i, release, l) :: else fi
    fi
  }
  lease[l].phase = ENDED; lease[l].age = LIMIT_OF(l); CLEAR(granted, l); stop_extending(l)
}

inline take_over() {          /* a client holds its lingering lease again, with the next token and without a message */
  for (j : 0 .. LEASES-1) { CLAIM(exclusion, j == l || lease[j].phase != HOLDING) }
  lease[l].phase = HOLDING;
  if :: WITHOUT == LINGER_TOKEN -> skip :: else -> lease[l].handoffs++ fi;
  take_token()
}

/* ---- what a master does with a message ---- */
inline execute_acquire() {
  if
  :: ON(t, l) -> skip         /* a duplicate: nothing is written, so the TTL counts from the first execution */
  :: else ->
    m[t].lock = ID(l); m[t].repaired = 0; LASTS(t, l, lease[l].deadline); RAISE(m[t].fence, LAST(l));
    m[t].depth = (WITHOUT == ABSOLUTE_DEPTH -> 2 : 0)           /* as if the lock had been re-entered immediately */
  fi;
  if :: lease[l].phase == ACQUIRING -> PUT(t, granted, l) :: else fi
}
inline execute_repair() {
  if :: ON(t, l) -> PROLONG(t, l, lease[l].repair) :: else -> m[t].lock = ID(l); LASTS(t, l, lease[l].repair) fi;
  m[t].repaired = 1; RAISE(m[t].fence, lease[l].repair_ballot)
}
inline confirm() {            /* also in quarantine. The confirmation of a repaired master counts like any other. */
  TAKE(t, extend, l); PROLONG(t, l, lease[l].extension); PUT(t, confirmed, l);
  if
  :: COUNT(confirmed, l) >= QUORUM && lease[l].extended < lease[l].age -> lease[l].age = lease[l].extended
  :: else
  fi
}
inline execute_unlock() { if :: ON(t, l) -> m[t].depth--; if :: m[t].depth == 0 -> drop_lock(t) :: else fi :: else fi }
inline execute_release() {
  if :: ON(t, l) -> drop_lock(t) :: else fi;
  k = MAX(LAST(l), lease[l].repair_ballot);
  if :: BALLOT_IN_RELEASE && k <= MAX(TIME(t), m[t].fence) + W -> RAISE(m[t].fence, k) :: else fi
}

/* ---- faults of a master ---- */
inline restart() {            /* ends the sessions and drops their messages. Releases are sent again on the next session. */
  if :: WITHOUT != STAMP -> m[t].acquire = 0 :: else fi;        /* a late acquire carries the stamp of the old admission record */
  if :: WITHOUT != ROUND_STAMP -> m[t].missing = 0 :: else fi;  /* a repair is sent only on the session of its round */
  m[t].repair = 0; m[t].extend = 0; m[t].unlock = 0;
  if :: WITHOUT != QUARANTINE -> m[t].quarantine = Q :: else fi
}
inline forget() { drop_lock(t); m[t].fence = 0 }
inline flush() {              /* the sessions stay; scripts find no record, or a record with another stamp */
  if
  :: WITHOUT == RECORD_IN_SCRIPT -> skip
  :: WITHOUT == ROUND_STAMP -> m[t].acquire = 0; m[t].quarantine = Q
  :: else -> restart()
  fi;
  forget()
}

/* ---- time, and what follows each step ---- */
inline tick() {
  for (i : 0 .. N-1) {
#ifdef JUMPS
    if :: m[i].lock != 0 && m[i].ttl > -BACK -> m[i].ttl-- :: else fi;
    if :: m[i].until > 0 -> m[i].until-- :: else fi;
    if :: m[i].quarantine > 0 && m[i].off < FAR -> m[i].quarantine-- :: else fi;
    if :: m[i].fence > 0 -> m[i].fence--; if :: FENCE_EXPIRES(NOW - BACK, m[i].fence) -> m[i].fence = 0 :: else fi :: else fi
#else
    if :: m[i].ttl > 0 -> m[i].ttl--; if :: m[i].ttl == 0 -> drop_lock(i) :: else fi :: else fi;
    if :: m[i].quarantine > 0 -> m[i].quarantine-- :: else fi;
    if :: m[i].fence > 0 -> m[i].fence--; if :: FENCE_EXPIRES(TIME(i), m[i].fence) -> m[i].fence = 0 :: else fi :: else fi
#endif
  }
  for (j : 0 .. LEASES-1) {
    if :: lease[j].age < LIMIT_OF(j) -> lease[j].age++ :: else fi;
    if :: lease[j].extended < LIMIT_OF(j) -> lease[j].extended++ :: else fi;
    if :: lease[j].ballot > 0 -> lease[j].ballot-- :: else fi;
    if :: lease[j].repair_ballot > 0 -> lease[j].repair_ballot-- :: else fi;
#ifdef JUMPS
    if :: lease[j].deadline > 0 -> lease[j].deadline-- :: else fi;
    if :: lease[j].extension > 0 -> lease[j].extension-- :: else fi;
    if :: lease[j].repair > 0 -> lease[j].repair-- :: else fi;
#endif
    if :: lease[j].phase == HOLDING && lease[j].age >= LIMIT_OF(j) -> lease[j].phase = LOST; stop_extending(j) :: else fi
  }
  if :: top > 0 -> top-- :: else fi
}

#define KEY(t) (m[t].lock | (TTL_KEY(t) << 3) | (m[t].fence << 6) | (m[t].quarantine << 10) | (m[t].acquire << 13) | \
  (m[t].granted << 16) | (m[t].release << 19) | (m[t].extend << 22) | (m[t].confirmed << 25))
#ifdef JUMPS
#define UNSORTED(a, b) (KEY(a) > KEY(b) || (KEY(a) == KEY(b) && OFF_KEY(a) > OFF_KEY(b)))
#else
#define UNSORTED(a, b) (KEY(a) > KEY(b))
#endif
#define SORT(a, b) if :: UNSORTED(a, b) -> SWAP_CLOCKS(a, b) SWAP(lock, a, b); SWAP(ttl, a, b); SWAP(repaired, a, b); SWAP(depth, a, b); \
  SWAP(fence, a, b); SWAP(quarantine, a, b); SWAP(acquire, a, b); SWAP(release, a, b); SWAP(extend, a, b); SWAP(repair, a, b); \
  SWAP(unlock, a, b); SWAP(granted, a, b); SWAP(confirmed, a, b); SWAP(missing, a, b) :: else fi
inline normalize() {
  for (i : 0 .. N-1) {
    for (j : 0 .. LEASES-1) {
      if :: HAS(i, acquire, j) && REFUSED_FOREVER(i, lease[j].ballot) && WITHOUT != WINDOW -> TAKE(i, acquire, j) :: else fi;
      if :: HAS(i, repair, j) && REFUSED_FOREVER(i, lease[j].repair_ballot) -> TAKE(i, repair, j) :: else fi;
      if :: HAS(i, release, j) && !ON(i, j) && !IN_FLIGHT(i, j) && WITHOUT != NEW_LEASE_ID -> TAKE(i, release, j) :: else fi;
      if :: ON(i, j) && !HAS(i, acquire, j) -> m[i].repaired = 0 :: else fi;
#ifdef JUMPS
      if
      :: HAS(i, acquire, j) && lease[j].ballot <= m[i].until || HAS(i, repair, j) && lease[j].repair_ballot <= m[i].until ||
        HAS(i, extend, j) && ON(i, j) && !LEFT(i) && COUNTS(i, j) -> k = 1
      :: else
      fi;
#endif
      CLAIM(orphans, !(ON(i, j) && lease[j].phase == ENDED && !IN_FLIGHT(i, j) && !HAS(i, release, j) && WITHOUT != NEW_LEASE_ID))
    }
#ifdef JUMPS
    /* No message has a ballot of at most the deadline. */
    if :: m[i].until < NOW - 1 && k == 0 -> m[i].until = 0; if :: !LEFT(i) -> drop_lock(i) :: else fi :: else fi;
    k = 0
#endif
  }
#ifdef JUMPS
  for (j : 0 .. LEASES-1) {
    if :: COUNT(acquire, j) == 0 -> lease[j].deadline = 0 :: else fi;
    if :: COUNT(extend, j) == 0 -> lease[j].extension = 0 :: else fi;
    if :: COUNT(repair, j) == 0 -> lease[j].repair = 0 :: else fi
  }
#endif
  for (j : 0 .. LEASES-1) {
    if
    :: lease[j].phase != ACQUIRING && (RANGE == 0 || (lease[j].phase != HOLDING && lease[j].phase != LINGERING)) && PAST(NOW, lease[j].ballot) &&
      WITHOUT != WINDOW -> lease[j].ballot = 0
    :: else
    fi;
    if
    :: COUNT(repair, j) == 0 && (lease[j].phase == ACQUIRING || lease[j].phase == LOST) -> lease[j].repair_ballot = 0
    :: else
    fi;
    if
    :: lease[j].phase != IDLE && lease[j].phase != HOLDING && lease[j].phase != LINGERING && lease[j].age >= LIMIT_OF(j) && NO_TRACE(j) ->
      lease[j].phase = IDLE; lease[j].ballot = 0; lease[j].repair_ballot = 0; CLEAR(granted, j); CLEAR(confirmed, j); CLEAR(missing, j)
    :: else
    fi
  }
  if :: top + W + LIMIT + LONGER < NOW -> top = 0 :: else fi;
#ifndef NAMES
  SORT(0, 1);
#if SKEW == 0
  SORT(1, 2); SORT(0, 1);
#endif
#endif
  i = 0; j = 0; k = 0
}

/* ---- the steps ---- */
#define MAY_START(l) (lease[l].phase == IDLE && (l == 0 || lease[l-1].phase != IDLE))

proctype Client(byte l) {
  do
#if WITHOUT == WINDOW
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot -3\n", l), start(NOW - 3))
#elif WITHOUT == WINDOW_EDGE
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot -W\n", l), start(NOW - W))
#endif
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot -1\n", l), start(NOW - 1))
#if AHEAD >= 0
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot 0\n", l), start(NOW))
#endif
#if WITHOUT == LOW_BALLOT     /* the larger of two clocks */
#define HIGHEST MAX(m[0].off, MAX(m[1].off, m[2].off))
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot of the wrong clock\n", l), k = HIGHEST; start(NOW + k))
#endif
#if AHEAD >= 1
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot +1\n", l), start(NOW + 1))
#endif
#if AHEAD >= 2
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot +2\n", l), start(NOW + 2))
#endif
#if AHEAD >= 3
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot +3\n", l), start(NOW + 3))
#endif
  :: STEP(lease[l].phase == ACQUIRING && COUNT(granted, l) >= QUORUM && lease[l].age <= LAST_AGE + MORE(l), ("lease %d: held\n", l), win())
  :: STEP(lease[l].phase != IDLE && lease[l].phase != ENDED, ("lease %d: ended, releases sent\n", l), end())
#if RANGE > 0 && !defined(LINGER)   /* with LINGER, a hand-off is an unlock and a take-over */
  :: STEP(lease[l].phase == HOLDING && lease[l].handoffs < RANGE, ("lease %d: handed off\n", l), lease[l].handoffs++; take_token())
#endif
#ifdef LINGER                  /* the step "ended" covers a recall and the end of the linger time */
  :: STEP(l < LINGER && lease[l].phase == HOLDING && lease[l].handoffs < RANGE, ("lease %d: unlocked, lingers\n", l), lease[l].phase = LINGERING)
  :: STEP(lease[l].phase == LINGERING && (lease[l].age <= LAST_AGE + MORE(l) || WITHOUT == LINGER_VALIDITY),
    ("lease %d: taken over\n", l), take_over())
#endif
#if WITHOUT == ABSOLUTE_DEPTH
  :: STEP(lease[l].phase == HOLDING && !lease[l].unlocked, ("lease %d: inner unlock\n", l), lease[l].unlocked = 1; SEND_ALL(unlock, l))
#endif
#ifdef EXTEND
  :: STEP(lease[l].phase == HOLDING && lease[l].extended > 0, ("lease %d: extensions sent\n", l), send_extension())
#endif
  od
}
proctype Link(byte t; byte l) {        /* between master t and the client of lease l. "not the last time": a duplicate follows */
  do
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d\n", t, l), execute_acquire(); TAKE(t, acquire, l))
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d, not the last time\n", t, l), execute_acquire())
#ifdef FIFO
  :: STEP(HAS(t, release, l) && !IN_FLIGHT(t, l), ("master %d: release of lease %d\n", t, l), execute_release(); TAKE(t, release, l))
#else
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d\n", t, l), execute_release(); TAKE(t, release, l))
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d, not the last time\n", t, l), execute_release())
#endif
#if WITHOUT == ABSOLUTE_DEPTH
  :: STEP(HAS(t, unlock, l), ("master %d: inner unlock of lease %d\n", t, l), execute_unlock(); TAKE(t, unlock, l))
  :: STEP(HAS(t, unlock, l), ("master %d: inner unlock of lease %d, not the last time\n", t, l), execute_unlock())
#endif
#ifdef EXTEND
  :: STEP(HAS(t, extend, l) && ON(t, l) && COUNTS(t, l), ("master %d confirms lease %d\n", t, l), confirm())
  :: STEP(HAS(t, extend, l) && !(ON(t, l) && COUNTS(t, l)), ("master %d misses lease %d\n", t, l), TAKE(t, extend, l); PUT(t, missing, l))
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent, ballot -1\n", t, l), send_repair(-1))
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent, ballot +1\n", t, l), send_repair(1))
  :: STEP(HAS(t, repair, l) && TAKES_REPAIR(t, l), ("master %d: lease %d repaired\n", t, l), execute_repair(); TAKE(t, repair, l))
  :: STEP(HAS(t, repair, l) && TAKES_REPAIR(t, l), ("master %d: lease %d repaired, not the last time\n", t, l), execute_repair())
#endif
  od
}
#ifdef JUMPS
#define MAY_JUMP(t) (jumps > 0 && WRONG(0) + WRONG(1) + WRONG(2) - WRONG(t) == 0)
inline jump_far() {
  m[t].off = FAR; forget(); if :: WITHOUT != JUMP_QUARANTINE -> m[t].quarantine = Q :: else fi
}
proctype Jumps(byte t) {
  do
#define JUMP(to) STEP(MAY_JUMP(t) && m[t].off != to, ("master %d: its clock jumps to %d\n", t, to), jumps--; m[t].off = to)
  :: JUMP(0)
  :: JUMP(W)
  :: JUMP(-BACK)
#if W > 1
  :: JUMP(1)
#endif
#if BACK > 1
  :: JUMP(-1)
#endif
  :: STEP(MAY_JUMP(t) && m[t].off != FAR, ("master %d: its clock jumps far ahead\n", t), jumps--; jump_far())
  od
}
#endif
proctype Clock() { do :: STEP(true, ("one tick\n"), tick()) od }
#ifdef FORGET
proctype Faults(byte t) {
  do
  :: STEP(true, ("master %d restarts empty\n", t), restart(); forget())
#ifdef RESTART
  :: STEP(true, ("master %d restarts with its data\n", t), restart())
#endif
#ifdef FLUSH
  :: STEP(true, ("master %d is flushed\n", t), flush())
#endif
  od
}
#endif
init {
  atomic {
    for (j : 0 .. LEASES-1) { lease[j].phase = IDLE; lease[j].age = LIMIT_OF(j); lease[j].extended = LIMIT_OF(j) }
    run Clock();
#ifdef JUMPS
    run Jumps(0); run Jumps(1); run Jumps(2);
#endif
#ifdef FORGET
    run Faults(0); run Faults(1); run Faults(2);
#endif
    for (j : 0 .. LEASES-1) { run Client(j); run Link(0, j); run Link(1, j); run Link(2, j) }
  }
}

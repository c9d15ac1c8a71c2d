/* shares.pml: readers and writers of one name, and the downgrade of a writer to a reader. Read common.pml first.
 *
 * A master has a share of each lease, with a remaining time for each share; the fence, which writers and releases raise;
 * and the readers' fence, which readers raise. A reader's ballot must be above the fence, and a writer's ballot above both
 * fences. -DWRITERS is a mask: the leases of writers.
 *
 * DOWNGRADE (-DDOWNGRADES). Lease 0, of a writer, becomes lease 1, of a reader, in any number of rounds. Each round has a
 * new ballot, to which each master raises its readers' fence, even if it already has the reader's share: the last ballot
 * is the token.
 *
 * CLAIMS   exclusion      while a writer holds the name, no other client does
 *          alone          on each master, a writer's share is the only share
 *          tokens         a writer's token is above all earlier tokens; a reader's token is above all earlier writers' tokens
 *          downgrade_gap  no other writer holds the name between a writer's hold and the reader's hold that it becomes
 *          orphans        a master that has executed all messages of an ended lease does not have its share
 *          gone_waiter    such a master does not have the waiter of that lease either (with -DQUEUE)
 * SWITCHES -DLEASES=n  -DEXTEND=mask (leases that are extended and repaired)  -DFORGET -DRESTART -DAHEAD=1 (as in redlock.pml)
 *          -DONCE   no message is executed twice        -DJUMPS  clocks of masters jump: see common.pml
 *          -DQUEUE  a refused writer is queued, and readers wait behind this writer
 */
#ifndef LEASES
#define LEASES 3
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef EXTEND
#define EXTEND 0
#endif
#include "common.pml"
#define N 3
#define WRITES(l) ((WRITERS >> (l)) & 1)
#define EXTENDS(l) ((EXTEND >> (l)) & 1)
#ifdef QUEUE
hidden byte gone_waiter;
#endif

typedef Master {
  byte share[LEASES];         /* remaining time of the share of each lease; 0: none. With JUMPS 1 more; 1: it has expired */
  byte fence, readers_fence, quarantine;
  byte acquire, release, extend, repair; /* messages in flight */
  byte ballot;                /* releases in flight that carry a ballot */
  byte granted, confirmed, missing;      /* replies */
  byte waiting                /* queued writers */
}
typedef Lease {
  mtype phase;
  byte age, extended;         /* age: since the attempt or the last confirmed extension. extended: since the last extension */
  byte ballot, repair_ballot;
  bool downgraded             /* of lease 1: it was lease 0 */
}
Master m[N];
Lease lease[LEASES];
byte top_writer, top_reader;  /* largest tokens of all holds so far */
bool other_writer;            /* another writer has held since the downgrade began */

#define COUNT(field, l) (HAS(0, field, l) + HAS(1, field, l) + HAS(2, field, l))
#define CLEAR(field, l) TAKE(0, field, l); TAKE(1, field, l); TAKE(2, field, l)
#define SEND_ALL(field, l) PUT(0, field, l); PUT(1, field, l); PUT(2, field, l)
#define ON(t, l) (m[t].share[l] > 0)
#define EXPIRED(t, l) PASSED(m[t].share[l] - 1)
#define LASTS(age) (REMAINS(TTL, age) + STAYS)
#define IN_FLIGHT(t, l) (HAS(t, acquire, l) || HAS(t, repair, l))
#define NO_TRACE(l) (!ON(0, l) && !ON(1, l) && !ON(2, l) && \
  COUNT(acquire, l) + COUNT(release, l) + COUNT(extend, l) + COUNT(repair, l) + COUNT(waiting, l) == 0)
#define OTHER(t, l, x) ((l) != (x) && ON(t, x) && !EXPIRED(t, x))
#define OTHER_WRITER(t, l, x) (OTHER(t, l, x) && WRITES(x))
#if LEASES == 2
#define ANY(t, l) (OTHER(t, l, 0) || OTHER(t, l, 1))
#define ANY_WRITER(t, l) (OTHER_WRITER(t, l, 0) || OTHER_WRITER(t, l, 1))
#else
#define ANY(t, l) (OTHER(t, l, 0) || OTHER(t, l, 1) || OTHER(t, l, 2))
#define ANY_WRITER(t, l) (OTHER_WRITER(t, l, 0) || OTHER_WRITER(t, l, 1) || OTHER_WRITER(t, l, 2))
#endif
#define FREE(t, l) (WRITES(l) -> (WITHOUT == WRITER_ALONE -> !ANY_WRITER(t, l) : !ANY(t, l)) : \
  (WITHOUT == READERS_WAIT || !ANY_WRITER(t, l)))
#define FENCE_FOR(t, l) (WITHOUT == FENCE -> 0 : \
  (WRITES(l) && WITHOUT != READERS_FENCE -> MAX(m[t].fence, m[t].readers_fence) : m[t].fence))
#define ACCEPTS(t, l, b) ((b) > FENCE_FOR(t, l) && RECENT(NOW, b) && (b) <= MAX(NOW, FENCE_FOR(t, l)) + W)
#define REFUSED_FOREVER(t, l, b) ((b) <= FENCE_FOR(t, l) || !RECENT(NOW, b))
#define GRANTS(t, l) (lease[l].downgraded && WITHOUT != DOWNGRADE_ATOMIC -> \
  (ON(t, l) && WITHOUT == TOKEN_IS_FENCE) || \
  ((ON(t, l) || ON(t, 0) || (WITHOUT == DOWNGRADE_SHARE && FREE(t, l))) && ACCEPTS(t, l, lease[l].ballot)) : \
  (m[t].quarantine == 0 || lease[l].downgraded) && (ON(t, l) || (FREE(t, l) && (m[t].waiting == 0 || WRITES(l)) && \
    ACCEPTS(t, l, lease[l].ballot))))
#define REPLACES(t, l) (lease[l].downgraded && ON(t, 0))
#define TAKES_REPAIR(t, l) (ON(t, l) || ((FREE(t, l) || REPLACES(t, l)) && ACCEPTS(t, l, lease[l].repair_ballot)))
#define REPAIRABLE(t, l) (lease[l].phase == HOLDING && \
  (WITHOUT == MAJORITY_FIRST -> !ON(t, l) : COUNT(confirmed, l) >= 2 && HAS(t, missing, l)))

inline stop_extending(l) { CLEAR(extend, l); CLEAR(confirmed, l); CLEAR(missing, l); lease[l].extended = LIMIT }

/* ---- what a client does with a lease ---- */
inline start(b) {
  lease[l].phase = ACQUIRING; lease[l].age = 0; lease[l].ballot = b; lease[l].downgraded = 0;
  for (i : 0 .. N-1) { if :: m[i].quarantine == 0 -> PUT(i, acquire, l) :: else fi }
}
inline win() {
  for (j : 0 .. LEASES-1) { CLAIM(exclusion, j == l || lease[j].phase != HOLDING || (!WRITES(l) && !WRITES(j))) }
  lease[l].phase = HOLDING; CLEAR(granted, l);
  CLAIM(tokens, lease[l].ballot > top_writer && (!WRITES(l) || lease[l].ballot > top_reader));
  if
  :: WRITES(l) ->
    top_writer = MAX(top_writer, lease[l].ballot);
    if :: lease[0].phase == DOWNGRADED && lease[1].phase == ACQUIRING -> other_writer = 1 :: else fi
  :: else -> top_reader = MAX(top_reader, lease[l].ballot)
  fi;
  CLAIM(downgrade_gap, !(lease[l].downgraded && other_writer));
  if :: WITHOUT == VALIDITY_START -> lease[l].age = 0 :: else fi
}
inline send_extension() { SEND_ALL(extend, l); CLEAR(confirmed, l); CLEAR(missing, l); lease[l].extended = 0 }
inline send_repair() { PUT(t, repair, l); TAKE(t, missing, l); lease[l].repair_ballot = MAX(NOW - 1, lease[l].ballot + 1) }
inline end() {                /* the release of a downgraded reader also ends the writer's lease */
  for (i : 0 .. N-1) {
    if
    :: ON(i, l) || IN_FLIGHT(i, l) || (lease[l].downgraded && (ON(i, 0) || IN_FLIGHT(i, 0))) || HAS(i, waiting, l) ->
      if
      :: WITHOUT == ROLL_BACK && lease[l].phase == ACQUIRING -> skip
      :: else ->
        PUT(i, release, l);
        if :: IN_FLIGHT(i, l) || (lease[l].downgraded && WITHOUT != DOWNGRADE_BALLOTS) -> PUT(i, ballot, l) :: else fi
      fi
    :: else
    fi
  }
  lease[l].phase = ENDED; lease[l].age = LIMIT; CLEAR(granted, l); stop_extending(l)
}
inline downgrade_round() {
  lease[1].ballot = MAX(NOW - 1, MAX(lease[0].ballot, MAX(lease[0].repair_ballot, lease[1].ballot)) + 1);
  lease[1].phase = ACQUIRING; lease[1].downgraded = 1; lease[1].age = 0; CLEAR(granted, 1); SEND_ALL(acquire, 1)
}
inline downgrade() {
  lease[0].phase = DOWNGRADED; lease[0].age = LIMIT; stop_extending(0); other_writer = 0; downgrade_round();
  if :: WITHOUT == DOWNGRADE_ATOMIC -> m[0].share[0] = 0; m[1].share[0] = 0; m[2].share[0] = 0 :: else fi
}

/* ---- what a master does with a message ---- */
inline write_share(value, time) {   /* time: since the message was sent */
#ifdef JUMPS                  /* an acquire removes expired shares */
  for (i : 0 .. LEASES-1) { if :: i != l && ON(t, i) && EXPIRED(t, i) -> m[t].share[i] = 0 :: else fi }
#endif
  m[t].share[l] = MAX(m[t].share[l], LASTS(time)); TAKE(t, waiting, l);
  if :: WRITES(l) -> RAISE(m[t].fence, value) :: else -> RAISE(m[t].readers_fence, value) fi;
  if :: lease[l].downgraded -> m[t].share[0] = 0 :: else fi
}
#define ATTEMPT_AGE(l) (lease[l].phase == ACQUIRING -> lease[l].age : TTL)
inline execute_acquire() {
  if
  :: ON(t, l) ->
    if
    :: lease[l].downgraded && WITHOUT != DOWNGRADE_EXTENDS -> m[t].share[l] = MAX(m[t].share[l], LASTS(ATTEMPT_AGE(l)))
    :: else
    fi;
    if :: lease[l].downgraded && WITHOUT != TOKEN_IS_FENCE -> RAISE(m[t].readers_fence, lease[l].ballot) :: else fi
  :: else -> k = ATTEMPT_AGE(l); write_share(lease[l].ballot, k)
  fi;
  if :: lease[l].phase == ACQUIRING -> PUT(t, granted, l) :: else fi
}
inline confirm() {
  TAKE(t, extend, l); m[t].share[l] = MAX(m[t].share[l], LASTS(lease[l].extended)); PUT(t, confirmed, l);
  if :: COUNT(confirmed, l) >= 2 && lease[l].extended < lease[l].age -> lease[l].age = lease[l].extended :: else fi
}
inline execute_release() {
  m[t].share[l] = 0; TAKE(t, waiting, l);
  if :: lease[l].downgraded && WITHOUT != DOWNGRADE_RELEASES -> m[t].share[0] = 0 :: else fi;
  k = MAX(lease[l].ballot, lease[l].repair_ballot);
  if :: lease[l].downgraded && WITHOUT != DOWNGRADE_BALLOTS -> k = MAX(k, lease[0].repair_ballot) :: else fi;
  if
  :: HAS(t, ballot, l) && WITHOUT != TOMBSTONE && k <= MAX(NOW, m[t].fence) + W ->
    if :: WITHOUT == READER_TOMBSTONE && !WRITES(l) -> RAISE(m[t].readers_fence, k) :: else -> RAISE(m[t].fence, k) fi
  :: else
  fi
}
inline restart() {
  m[t].acquire = 0; m[t].repair = 0; m[t].extend = 0;
  if :: WITHOUT != ROUND_STAMP -> m[t].missing = 0 :: else fi;
  if :: WITHOUT != QUARANTINE -> m[t].quarantine = Q :: else fi
}
inline forget() { for (i : 0 .. LEASES-1) { m[t].share[i] = 0 } m[t].fence = 0; m[t].readers_fence = 0; m[t].waiting = 0 }

/* ---- time, and what follows each step ---- */
inline expire(value) { if :: value > 0 -> value--; if :: FENCE_EXPIRES(NOW, value) -> value = 0 :: else fi :: else fi }
inline tick() {
  for (i : 0 .. N-1) {
    for (j : 0 .. LEASES-1) { if :: m[i].share[j] > STAYS -> m[i].share[j]-- :: else fi }
    if :: m[i].quarantine > 0 -> m[i].quarantine-- :: else fi;
    expire(m[i].fence); expire(m[i].readers_fence)
  }
  for (j : 0 .. LEASES-1) {
    if :: lease[j].age < LIMIT -> lease[j].age++ :: else fi;
    if :: lease[j].extended < LIMIT -> lease[j].extended++ :: else fi;
    if :: lease[j].ballot > 0 -> lease[j].ballot-- :: else fi;
    if :: lease[j].repair_ballot > 0 -> lease[j].repair_ballot-- :: else fi;
    if :: lease[j].phase == HOLDING && lease[j].age >= LIMIT -> lease[j].phase = LOST; stop_extending(j) :: else fi
  }
  if :: top_writer > 0 -> top_writer-- :: else fi; if :: top_reader > 0 -> top_reader-- :: else fi
}
#ifdef QUEUE                  /* even a stale acquire queues its waiter, so it stays in flight while its ballot is recent */
#define NOT_QUEUED(j) (!RECENT(NOW, lease[j].ballot) || !WRITES(j))
#else
#define NOT_QUEUED(j) true
#endif
#define OWN_RELEASE(i, j) (HAS(i, release, j) || (j == 0 && lease[1].downgraded && HAS(i, release, 1)))
#define IS_OVER(i, j) (lease[j].phase == ENDED || (lease[j].phase == DOWNGRADED && lease[1].phase == ENDED && !IN_FLIGHT(i, 1)))
#define DOWNGRADING(j) (lease[0].phase == DOWNGRADED && lease[1].downgraded && \
  (j == 0 || (j == 1 && (lease[1].phase == LOST || !NO_TRACE(0)))))
#define KEY(t) (m[t].share[0] | (m[t].share[1] << 2) | (m[t].share[LEASES-1] << 4) | (m[t].fence << 6) | (m[t].readers_fence << 10) | \
  (m[t].quarantine << 14) | (m[t].acquire << 17) | (m[t].granted << 20) | (m[t].release << 23) | (m[t].confirmed << 26))
#define SORT(a, b) if :: KEY(a) > KEY(b) -> for (i : 0 .. LEASES-1) { SWAP(share[i], a, b) } SWAP(fence, a, b); \
  SWAP(readers_fence, a, b); SWAP(quarantine, a, b); SWAP(acquire, a, b); SWAP(release, a, b); SWAP(ballot, a, b); \
  SWAP(extend, a, b); SWAP(repair, a, b); SWAP(granted, a, b); SWAP(confirmed, a, b); SWAP(missing, a, b); SWAP(waiting, a, b) :: else fi
inline normalize() {
  for (i : 0 .. N-1) {
    for (j : 0 .. LEASES-1) {
      if
      :: HAS(i, acquire, j) && REFUSED_FOREVER(i, j, lease[j].ballot) && WITHOUT != WINDOW && NOT_QUEUED(j) &&
        !(WITHOUT == TOKEN_IS_FENCE && lease[j].downgraded) -> TAKE(i, acquire, j)
      :: else
      fi;
      if :: HAS(i, repair, j) && REFUSED_FOREVER(i, j, lease[j].repair_ballot) -> TAKE(i, repair, j) :: else fi;
      if
      :: HAS(i, release, j) && !ON(i, j) && !IN_FLIGHT(i, j) && !HAS(i, waiting, j) &&
        !(lease[j].downgraded && (ON(i, 0) || IN_FLIGHT(i, 0))) -> TAKE(i, release, j)
      :: else
      fi;
      if :: !HAS(i, release, j) -> TAKE(i, ballot, j) :: else fi;
#ifdef JUMPS
      if
      :: m[i].share[j] == 1 && (!EXTENDS(j) || lease[j].phase != HOLDING) && !(j == 0 && DOWNGRADING(0)) && !lease[j].downgraded ->
        m[i].share[j] = 0     /* nothing depends on the expired share any more */
      :: else
      fi;
#endif
      CLAIM(alone, WITHOUT == WRITER_ALONE || WITHOUT == READERS_WAIT || !(ON(i, j) && WRITES(j) && ANY(i, j)));
      CLAIM(orphans, !(ON(i, j) && IS_OVER(i, j) && !IN_FLIGHT(i, j) && !OWN_RELEASE(i, j)));
#ifdef QUEUE
      CLAIM(gone_waiter, !(HAS(i, waiting, j) && lease[j].phase == ENDED && !HAS(i, acquire, j) && !HAS(i, release, j)))
#endif
    }
  }
  for (j : 0 .. LEASES-1) {
    if :: lease[j].phase != ACQUIRING && PAST(NOW, lease[j].ballot) && WITHOUT != WINDOW -> lease[j].ballot = 0 :: else fi;
    if :: COUNT(repair, j) == 0 && (lease[j].phase == ACQUIRING || lease[j].phase == LOST) -> lease[j].repair_ballot = 0 :: else fi;
    if
    :: lease[j].phase != IDLE && lease[j].phase != HOLDING && lease[j].phase != ACQUIRING && lease[j].age >= LIMIT && NO_TRACE(j) &&
      !DOWNGRADING(j) ->
      lease[j].phase = IDLE; lease[j].ballot = 0; lease[j].repair_ballot = 0; lease[j].downgraded = 0; CLEAR(granted, j);
      if
      :: j == 1 && lease[0].phase == DOWNGRADED -> lease[0].phase = IDLE; lease[0].ballot = 0; lease[0].repair_ballot = 0
      :: else
      fi
    :: else
    fi
  }
  if :: lease[0].phase != DOWNGRADED || lease[1].phase != ACQUIRING -> other_writer = 0 :: else fi;
  if :: top_writer + W + LIMIT < NOW -> top_writer = 0 :: else fi; if :: top_reader + W + LIMIT < NOW -> top_reader = 0 :: else fi;
#ifndef NAMES
  SORT(0, 1); SORT(1, 2); SORT(0, 1);
#endif
  i = 0; j = 0; k = 0
}

#define MAY_START(l) (lease[l].phase == IDLE && !(l == 1 && lease[0].phase == DOWNGRADED))
proctype Client(byte l) {
  do
#if WITHOUT == WINDOW
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot -3\n", l), start(NOW - 3))
#endif
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot -1\n", l), start(NOW - 1))
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot 0\n", l), start(NOW))
#ifdef AHEAD
  :: STEP(MAY_START(l), ("lease %d: acquire, ballot +1\n", l), start(NOW + 1))
#endif
  :: STEP(lease[l].phase == ACQUIRING && COUNT(granted, l) >= 2 && lease[l].age <= LAST_AGE, ("lease %d: held\n", l), win())
  :: STEP(lease[l].phase == ACQUIRING || lease[l].phase == HOLDING || lease[l].phase == LOST, ("lease %d: ended, releases sent\n", l), end())
#if EXTEND
  :: STEP(lease[l].phase == HOLDING && EXTENDS(l) && lease[l].extended > 0, ("lease %d: extensions sent\n", l), send_extension())
#endif
#ifdef DOWNGRADES
  :: STEP(l == 0 && lease[0].phase == HOLDING && lease[1].phase == IDLE, ("lease 0 is downgraded to lease 1\n"), downgrade())
  :: STEP(l == 1 && lease[1].phase == ACQUIRING && lease[1].downgraded && lease[1].ballot <= NOW, ("lease 1: another round\n"),
    downgrade_round())
#endif
  od
}
proctype Link(byte t; byte l) {
  do
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d\n", t, l), execute_acquire(); TAKE(t, acquire, l))
#ifndef ONCE
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l), ("master %d grants lease %d, not the last time\n", t, l), execute_acquire())
#endif
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d\n", t, l), execute_release(); TAKE(t, release, l))
#ifndef ONCE
  :: STEP(HAS(t, release, l), ("master %d: release of lease %d, not the last time\n", t, l), execute_release())
#endif
#ifdef QUEUE
  :: STEP(WRITES(l) && m[t].quarantine == 0 && HAS(t, acquire, l) && !GRANTS(t, l), ("master %d: waiter of lease %d queued\n", t, l),
    PUT(t, waiting, l); TAKE(t, acquire, l))
  :: STEP(HAS(t, waiting, l), ("master %d: waiter of lease %d counts no more\n", t, l), TAKE(t, waiting, l))
#endif
#if EXTEND
  :: STEP(HAS(t, extend, l) && ON(t, l), ("master %d confirms lease %d\n", t, l), confirm())
  :: STEP(HAS(t, extend, l) && (!ON(t, l) || EXPIRED(t, l)), ("master %d misses lease %d\n", t, l), TAKE(t, extend, l); PUT(t, missing, l))
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent\n", t, l), send_repair())
  :: STEP(HAS(t, repair, l) && TAKES_REPAIR(t, l), ("master %d: lease %d repaired\n", t, l),
    write_share(lease[l].repair_ballot, TTL); TAKE(t, repair, l))
#ifndef ONCE
  :: STEP(HAS(t, repair, l) && TAKES_REPAIR(t, l), ("master %d: lease %d repaired, not the last time\n", t, l),
    write_share(lease[l].repair_ballot, TTL))
#endif
#endif
  od
}
proctype Clock() { do :: STEP(true, ("one tick\n"), tick()) od }
#ifdef FORGET
proctype Faults(byte t) {
  do
  :: STEP(true, ("master %d restarts empty\n", t), restart(); forget())
#ifdef RESTART
  :: STEP(true, ("master %d restarts with its data\n", t), restart())
#endif
  od
}
#endif
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

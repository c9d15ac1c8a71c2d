/* joint.pml: a change of the masters while locks are held. Read common.pml first.
 *
 * CONFIGURATIONS. A client uses only the old masters (0), the joint configuration (1: a majority of the old masters and a
 * majority of the next masters), or only the next masters (2). A client may change to the next configuration while it holds
 * a lease. Clients with all three configurations may exist at the same time, if the admission records allow it. A master
 * has epoch 0, 1 or 2, the time since it got epoch 1, and a mark: the next masters may act alone, which means that clients
 * may use configuration 2. The operator writes epoch 1, then the marks, then epoch 2, one master after the other, and may
 * stop at any point.
 *
 * MESSAGES of an ended lease are dropped: they could only leave orphans, which lock out other clients (redlock.pml checks
 * orphans). The keys of an ended lease stay until a release, which may arrive at any time, or until they expire. With
 * -DONCE, a master executes the acquire of a round once; otherwise it may execute the acquire again.
 *
 * ABORT. With -DABORT a change may be cancelled: clients then use only the old masters again (configuration 3, with epoch
 * 2). The operator first closes the next masters: each gets a record with epoch 2 and the list of the old masters, but
 * without the mark that the old masters may act alone. When a majority of the next masters is closed and votes, the old
 * masters get the record with this mark. A master that loses its data may forget that it is closed, or which masters
 * may act alone, because the client that writes its new record knows only epoch 1. The operator looks at the masters
 * directly before each write (with -DPAUSED, the operator may pause between the look and the write).
 *
 * CLAIMS   exclusion   tokens (with -DBALLOTS=1; without ballots, masters of the model accept more than real masters)
 * SWITCHES
 *   -DM=n -DOLD=mask -DNEXT=mask   the masters; masters SAME to SAME+ALIKE-1 are in the same configurations
 *   -DFROM=0 -DTO=2   the configurations that clients use      -DEPOCHS     the operator's steps, and checks of the epoch by scripts
 *   -DFORGET          masters restart empty, or are flushed    -DLOSE_EPOCH a client that knows no epoch writes the new record
 *   -DNO_EXTEND       no extensions and repairs                -DFIXED      lease 0 always uses 0 or 2, and lease 1 always 1
 *   -DJUMPS           clocks of masters jump: see common.pml
 *   -DIMPORT          lease 0 is exported, and lease 1 imports it in the joint configuration; lease 2 is of another client
 */
#ifndef M
#define M 4
#endif
#ifndef OLD
#define OLD 7
#endif
#ifndef NEXT
#define NEXT 8
#endif
#ifndef LEASES
#define LEASES 2
#endif
#ifndef FROM
#define FROM 0
#endif
#ifndef TO
#define TO 2
#endif
#ifndef SAME
#define SAME 0
#endif
#ifndef ALIKE
#define ALIKE 3
#endif
#ifndef BALLOTS
#define BALLOTS 0
#endif
#ifndef FORGETS
#define FORGETS 31            /* the masters that may forget */
#endif
#define W BALLOTS
#include "common.pml"
#ifndef SETTLED
#define SETTLED (TTL + 2 * W) /* the old masters must have had epoch 1 for this time before the change may be finished */
#endif
#define ID(l) ((l) + 1)
#define EXPORTER 0
#define IMPORTER 1

typedef Master {
  byte lock, ttl;             /* id and remaining time of the lease that this master has */
  byte quarantine;            /* remaining time */
  byte epoch_age;             /* 0: epoch 0; otherwise 1 more than the time since this master got epoch 1 */
  bool epoch_2, final;        /* epoch_2: this master has epoch 2. final: its record allows the next masters to act alone */
#ifdef ABORT
  bool closed, back;          /* closed: the change is cancelled here. back: the record allows the old masters to act alone */
#endif
  byte acquire, extend, repair; /* messages in flight */
  byte granted, absent;       /* replies to the acquire; absent: this master has no lease to import */
  byte confirmed, missing;    /* replies to the last extension */
  byte fence
}
typedef Lease {
  mtype phase;
  byte age;                   /* since the attempt, or the last confirmed extension */
  byte config, confirmed_by;  /* configuration of the lease's client; configuration that last confirmed the lease */
  byte extended, extended_by; /* time since the last extension, and configuration of that extension */
  byte ballot
}
Master m[M];
Lease lease[LEASES];
bool settled;                 /* the operator has seen that the joint configuration is in force */
#ifdef PAUSED
bool given_up;                /* the operator has seen that the next masters are closed */
#endif
byte top;                     /* largest token of all holds so far */

#define IN(t, set) (((set) >> (t)) & 1)
#if M == 3
#define SUM(f, ...) (f(0, __VA_ARGS__) + f(1, __VA_ARGS__) + f(2, __VA_ARGS__))
#elif M == 4
#define SUM(f, ...) (f(0, __VA_ARGS__) + f(1, __VA_ARGS__) + f(2, __VA_ARGS__) + f(3, __VA_ARGS__))
#else
#define SUM(f, ...) (f(0, __VA_ARGS__) + f(1, __VA_ARGS__) + f(2, __VA_ARGS__) + f(3, __VA_ARGS__) + f(4, __VA_ARGS__))
#endif
#define SIZE(set) (IN(0, set) + IN(1, set) + IN(2, set) + IN(3, set) + IN(4, set))
#define VOTE(t, field, l, set) (IN(t, set) * HAS(t, field, l))
#define VOTES(field, l, set) SUM(VOTE, field, l, set)
#define MAJORITY(field, l, set) (2 * VOTES(field, l, set) > SIZE(set))
#define EITHER(field, l) (MAJORITY(field, l, OLD) || MAJORITY(field, l, NEXT))
#define BOTH(field, l) (MAJORITY(field, l, OLD) && MAJORITY(field, l, NEXT))
#define OLD_ALONE(config) ((config) == 0 || (config) == 3)
#define WON(field, l, config) (OLD_ALONE(config) -> MAJORITY(field, l, OLD) : ((config) == 2 -> MAJORITY(field, l, NEXT) : \
  (WITHOUT == BOTH_MAJORITIES -> EITHER(field, l) : BOTH(field, l))))
#define USES(config, t) (OLD_ALONE(config) -> IN(t, OLD) : ((config) == 2 -> IN(t, NEXT) : IN(t, OLD | NEXT)))
#define ON(t, l) (m[t].lock == ID(l))
#define LIVE(l) (lease[l].phase == ACQUIRING || lease[l].phase == HOLDING)

#ifdef ABORT
#define GIVEN_UP(t) (m[t].closed || m[t].back)
#define BACK(t) m[t].back
#define IS_BACK(t, set) (IN(t, set) * m[t].back)
#define MAY_GO_BACK (2 * SUM(IS_BACK, OLD) > SIZE(OLD))
#define IS_CLOSED(t, set) (IN(t, set) * (m[t].closed && (m[t].quarantine == 0 || WITHOUT == ABORT_QUARANTINE)))
#define ALL_CLOSED (2 * SUM(IS_CLOSED, NEXT) > SIZE(NEXT) || WITHOUT == ABORT_CLOSES)
#ifdef PAUSED
#define CLOSED_SEEN given_up
#else
#define CLOSED_SEEN ALL_CLOSED
#endif
#define NOT_BACK(t, set) (IN(t, set) * (!m[t].back && m[t].epoch_age > SETTLED))
#define MAY_FINISH(t) (!GIVEN_UP(t) && (WITHOUT == ABORT_SEEN -> IS_SETTLED : 2 * SUM(NOT_BACK, OLD) > SIZE(OLD)))
#else
#define GIVEN_UP(t) false
#define BACK(t) false
#define MAY_FINISH(t) settled
#endif
#define EPOCH_OF(config) ((config) == 3 -> 2 : (config))

#ifdef EPOCHS
#define EPOCH(t) (m[t].epoch_2 || GIVEN_UP(t) -> 2 : (m[t].epoch_age > 0 -> 1 : 0))
#define FINAL_ALLOWED(t) (m[t].final || WITHOUT == FINAL_CHECK)
#define MARKED(t, set) (IN(t, set) * m[t].final)
#define MAY_USE_FINAL (2 * SUM(MARKED, NEXT) > SIZE(NEXT) || WITHOUT == FINAL_CHECK)
#else                         /* all masters accept clients with the configurations FROM to TO at all times */
#define EPOCH(t) 0
#define FINAL_ALLOWED(t) true
#define MAY_USE_FINAL true
#endif
#define EPOCH_ALLOWS(t, config) (WITHOUT == EPOCH_CHECK || EPOCH(t) <= EPOCH_OF(config))
#define ADMITS(t, config) (USES(config, t) && EPOCH_ALLOWS(t, config) && ((config) != 2 || (FINAL_ALLOWED(t) && !GIVEN_UP(t))) && ((config) != 3 || BACK(t)))
/* A lease is extended and repaired only where the client could also acquire it, apart from a quarantine. */
#define CONFIRMS(t, config) (WITHOUT == EXTEND_PERMITTED -> EPOCH_ALLOWS(t, config) : ADMITS(t, config))
#define LONG_ENOUGH(t, set) (IN(t, set) * (WITHOUT == SETTLE_TIME -> m[t].epoch_age > 0 : m[t].epoch_age > SETTLED))
#define IS_SETTLED (2 * SUM(LONG_ENOUGH, OLD) > SIZE(OLD) || (WITHOUT == OLD_MAJORITY && SUM(LONG_ENOUGH, OLD) > 0))
#define BALLOT_OK(t, l) (!BALLOTS || (lease[l].ballot > m[t].fence && RECENT(NOW, lease[l].ballot)))
#ifdef IMPORT
#define IMPORTS(l) ((l) == IMPORTER)
#else
#define IMPORTS(l) false
#endif
#define VOTES_FOR(t, l) (m[t].quarantine == 0 || ((WITHOUT == VOTING_IMPORT || WITHOUT == VOTING_DOWNGRADE) && IMPORTS(l)))
#define FREE(t) (m[t].lock == 0 || PASSED(m[t].ttl))
#define HAS_LOCK(t, l) (ON(t, EXPORTER) || ON(t, l))
#define GRANTS(t, l) (VOTES_FOR(t, l) && ADMITS(t, lease[l].config) && \
  (IMPORTS(l) -> HAS_LOCK(t, l) && BALLOT_OK(t, l) : ON(t, l) || (FREE(t) && BALLOT_OK(t, l))))
#define LACKS(t, l) (IMPORTS(l) && VOTES_FOR(t, l) && ADMITS(t, lease[l].config) && !HAS_LOCK(t, l))

/* After a round in which all required majorities confirmed, each master that lacks the lease is repaired. After a joint
 * round in which only one majority confirmed, only voting masters are repaired. */
#define MAY_REPAIR(t, field, l, config) (WON(field, l, config) || \
  ((config) == 1 && EITHER(field, l) && (m[t].quarantine == 0 || WITHOUT == VOTING_REPAIR)))
#define REPAIRABLE(t, l) (lease[l].phase == HOLDING && HAS(t, missing, l) && MAY_REPAIR(t, confirmed, l, lease[l].extended_by))
/* The same applies to an import or a downgrade that only one majority has granted. */
#define REPAIRABLE_IMPORT(t, l) (IMPORTS(l) && lease[l].phase == ACQUIRING && lease[l].config == 1 && HAS(t, absent, l) && \
  EITHER(granted, l) && (m[t].quarantine == 0 || WITHOUT == VOTING_REPAIR || WITHOUT == VOTING_DOWNGRADE))

inline drop_lock(t) { m[t].lock = 0; m[t].ttl = 0 }
inline end(l) {
  for (k : 0 .. M-1) {
    TAKE(k, acquire, l); TAKE(k, extend, l); TAKE(k, repair, l); TAKE(k, granted, l); TAKE(k, absent, l);
    TAKE(k, confirmed, l); TAKE(k, missing, l)
  }
  lease[l].phase = ENDED; lease[l].age = 0; lease[l].config = 0; lease[l].confirmed_by = 0;
  lease[l].extended = 0; lease[l].extended_by = 0
}
inline start(c, b) {
  lease[l].phase = ACQUIRING; lease[l].age = 0; lease[l].config = c; lease[l].ballot = BALLOTS * (b);
  for (i : 0 .. M-1) {
    TAKE(i, granted, l); TAKE(i, absent, l);
    if :: VOTES_FOR(i, l) && USES(c, i) -> PUT(i, acquire, l) :: else fi
  }
}
inline win() {
  for (j : 0 .. LEASES-1) { CLAIM(exclusion, j == l || lease[j].phase != HOLDING) }
  lease[l].phase = HOLDING; lease[l].confirmed_by = lease[l].config;
  for (k : 0 .. M-1) { TAKE(k, granted, l); TAKE(k, acquire, l); TAKE(k, absent, l) }
  CLAIM(tokens, !BALLOTS || lease[l].ballot > top); top = lease[l].ballot
}
inline export() {
  lease[l].phase = EXPORTED;
#ifdef ONCE
  for (k : 0 .. M-1) { TAKE(k, acquire, l) }
#endif
}
inline send_extension() {
  for (i : 0 .. M-1) {
    TAKE(i, confirmed, l); TAKE(i, missing, l); TAKE(i, extend, l);
    if :: USES(lease[l].config, i) -> PUT(i, extend, l) :: else fi
  }
  lease[l].extended = 0; lease[l].extended_by = lease[l].config
}
inline execute_acquire() {
  if
  :: GRANTS(t, l) -> PUT(t, granted, l);
    if
    :: ON(t, l) && !IMPORTS(l) -> skip
    :: else ->
      m[t].ttl = MAX((ON(t, l) -> m[t].ttl : 0), (STAYS && lease[l].phase != ACQUIRING -> 0 : REMAINS(TTL, lease[l].age)));
      m[t].lock = ID(l); RAISE(m[t].fence, lease[l].ballot)
    fi
  :: else -> PUT(t, absent, l)
  fi
}
inline execute_extension() {
  TAKE(t, extend, l);
  if
  :: ON(t, l) && CONFIRMS(t, lease[l].extended_by) ->
    m[t].ttl = MAX(m[t].ttl, REMAINS(TTL, (lease[l].phase == HOLDING -> lease[l].extended : TTL)));
    if
    :: lease[l].phase == HOLDING ->
      PUT(t, confirmed, l);
      if
      :: WON(confirmed, l, lease[l].extended_by) && lease[l].extended <= lease[l].age ->
        lease[l].age = lease[l].extended; lease[l].confirmed_by = lease[l].extended_by
      :: else
      fi
    :: else
    fi
  :: !ON(t, l) && lease[l].phase == HOLDING -> PUT(t, missing, l)
  :: else
  fi
}
inline forget(t) {            /* a quarantine begins, with a record whose stamp no client has read yet */
  drop_lock(t); m[t].fence = 0;
  m[t].acquire = 0; m[t].repair = 0; m[t].extend = 0;
  if :: WITHOUT != ROUND_STAMP -> m[t].missing = 0; m[t].absent = 0 :: else fi;
  if :: WITHOUT != QUARANTINE -> m[t].quarantine = Q :: else fi;
  if :: m[t].epoch_age > 0 -> m[t].epoch_age = 1 :: else fi; /* the client that writes the new record knows only the epoch */
#ifdef ABORT
  m[t].closed = 0; m[t].back = 0;
  if :: !m[t].epoch_2 -> m[t].final = 0 :: else fi;
#endif
#ifdef LOSE_EPOCH
  m[t].epoch_age = 0; m[t].epoch_2 = 0; m[t].final = 0
#endif
}
inline tick() {
  for (i : 0 .. M-1) {
    if :: m[i].ttl > 0 -> m[i].ttl--; if :: m[i].ttl == 0 && !STAYS -> drop_lock(i) :: else fi :: else fi;
    if :: m[i].quarantine > 0 -> m[i].quarantine-- :: else fi;
    if :: m[i].epoch_age > 0 && m[i].epoch_age <= SETTLED -> m[i].epoch_age++ :: else fi;
    if :: m[i].fence > 0 -> m[i].fence--; if :: FENCE_EXPIRES(NOW, m[i].fence) -> m[i].fence = 0 :: else fi :: else fi
  }
  for (j : 0 .. LEASES-1) {
    if :: LIVE(j) -> lease[j].age++ :: else fi;
    if :: lease[j].phase == HOLDING && lease[j].extended < TTL -> lease[j].extended++ :: else fi;
    if
    :: LIVE(j) && lease[j].age >= TTL && !(IMPORTS(j) && lease[j].phase == ACQUIRING) -> end(j)
    :: lease[j].age > TTL -> lease[j].age = TTL
    :: else
    fi;
    if :: lease[j].ballot > 0 -> lease[j].ballot-- :: else fi
  }
  if :: top > 0 -> top-- :: else fi
}

#define KEY(t) (m[t].lock | (m[t].ttl << 3) | (m[t].quarantine << 5) | (m[t].acquire << 7) | (m[t].extend << 10) | \
  (m[t].repair << 13) | (m[t].granted << 16) | (m[t].confirmed << 19) | (m[t].missing << 22) | (m[t].absent << 25))
#define SORT(a, b) if :: KEY(a) > KEY(b) -> SWAP(lock, a, b); SWAP(ttl, a, b); SWAP(quarantine, a, b); SWAP(acquire, a, b); \
  SWAP(extend, a, b); SWAP(repair, a, b); SWAP(granted, a, b); SWAP(absent, a, b); SWAP(confirmed, a, b); SWAP(missing, a, b); \
  SWAP(epoch_age, a, b); SWAP(epoch_2, a, b); SWAP(final, a, b); SWAP_ABORT(a, b); SWAP(fence, a, b) :: else fi
#ifdef ABORT
#define SWAP_ABORT(a, b) SWAP(closed, a, b); SWAP(back, a, b)
#else
#define SWAP_ABORT(a, b) skip
#endif
#define NOWHERE(l) (m[0].lock != ID(l) && m[1].lock != ID(l) && m[2].lock != ID(l) && m[M-1].lock != ID(l) && m[M-2].lock != ID(l))
#define IN_FLIGHT(t, l) (HAS(t, acquire, l) | HAS(t, repair, l))
inline normalize() {
  for (j : 0 .. LEASES-1) {
    for (i : 0 .. M-1) {
      if :: STAYS && ON(i, j) && m[i].ttl == 0 && !LIVE(j) && lease[j].phase != EXPORTED -> drop_lock(i) :: else fi
    }
    if :: lease[j].phase == ENDED && NOWHERE(j) -> lease[j].phase = IDLE :: else fi;
#ifdef IMPORT
    if :: lease[j].phase == EXPORTED && NOWHERE(j) && lease[IMPORTER].phase != ACQUIRING && SUM(IN_FLIGHT, j) == 0 -> end(j) :: else fi;
#endif
    if :: !LIVE(j) && lease[j].phase != EXPORTED -> lease[j].ballot = 0 :: else fi;
    if :: lease[j].phase == HOLDING && lease[j].ballot + W + 1 < NOW -> lease[j].ballot = 0 :: else fi
  }
  if :: top + W + TTL < NOW -> top = 0 :: else fi;
#if !defined(NAMES) && ALIKE == 3
  SORT(SAME, SAME+1); SORT(SAME+1, SAME+2); SORT(SAME, SAME+1);
#elif !defined(NAMES) && ALIKE == 2
  SORT(SAME, SAME+1);
#endif
  i = 0; j = 0; k = 0
}

#ifdef IMPORT
#define ORDER(l) (l != IMPORTER || lease[EXPORTER].phase == EXPORTED)
#define KIND(l, c) (((l) == 2) == ((c) != 1))
#define ANOTHER_ROUND(l) (l == IMPORTER && lease[l].phase == ACQUIRING && lease[EXPORTER].phase == EXPORTED)
#else
#define ORDER(l) true
#ifdef FIXED
#define KIND(l, c) (((l) == 0) == ((c) != 1))
#else
#define KIND(l, c) true
#endif
#define ANOTHER_ROUND(l) false
#endif
#define MAY_START(l, c) (((lease[l].phase == IDLE && ORDER(l)) || ANOTHER_ROUND(l)) && KIND(l, c) && ((c) != 2 || MAY_USE_FINAL))
#define ACQUIRE(c, words, b) STEP(MAY_START(l, c), (words, l), start(c, b))

proctype Client(byte l) {
  do
#if FROM == 0
  :: ACQUIRE(0, "lease %d: acquire of the old masters\n", NOW)
#endif
#if FROM <= 1 && TO >= 1
  :: ACQUIRE(1, "lease %d: joint acquire\n", NOW)
#endif
#if TO == 2
  :: ACQUIRE(2, "lease %d: acquire of the next masters\n", NOW)
#endif
#ifdef ABORT
  :: STEP(lease[l].phase == IDLE && MAY_GO_BACK, ("lease %d: acquire of the old masters, after the abort\n", l), start(3, NOW))
  :: STEP(lease[l].phase == HOLDING && lease[l].config == 1 && MAY_GO_BACK && lease[l].confirmed_by >= 1,
    ("lease %d: uses the old masters again\n", l), lease[l].config = 3)
#endif
#if BALLOTS
  :: ACQUIRE(0, "lease %d: acquire of the old masters, ballot +1\n", NOW + 1)
  :: ACQUIRE(1, "lease %d: joint acquire, ballot +1\n", NOW + 1)
  :: ACQUIRE(2, "lease %d: acquire of the next masters, ballot +1\n", NOW + 1)
#endif
  :: STEP(lease[l].phase == ACQUIRING && WON(granted, l, lease[l].config) && lease[l].age < TTL, ("lease %d: held\n", l), win())
  :: STEP(LIVE(l), ("lease %d: ended\n", l), end(l))
#ifdef IMPORT
  :: STEP(l == IMPORTER && lease[l].phase == HOLDING, ("lease %d: extensions sent\n", l), send_extension())
  :: STEP(l == EXPORTER && lease[l].phase == HOLDING, ("lease %d: exported\n", l), export())
#else
#ifndef NO_EXTEND
  :: STEP(lease[l].phase == HOLDING, ("lease %d: extensions sent\n", l), send_extension())
#endif
#if FROM == 0 && !defined(FIXED)
  :: STEP(lease[l].phase == HOLDING && lease[l].config == 0, ("lease %d: becomes joint\n", l), lease[l].config = 1)
#endif
#if TO == 2 && !defined(FIXED)
  :: STEP(lease[l].phase == HOLDING && lease[l].config == 1 && MAY_USE_FINAL &&
      (lease[l].confirmed_by >= 1 || WITHOUT == CONFIRMED_JOINT),
    ("lease %d: uses the next masters\n", l), lease[l].config = 2)
#endif
#endif
  od
}
proctype Link(byte t; byte l) {
  do
  :: STEP(HAS(t, acquire, l) && (GRANTS(t, l) || LACKS(t, l)), ("master %d: acquire of lease %d\n", t, l),
    execute_acquire(); TAKE(t, acquire, l))
#ifndef ONCE
  :: STEP(HAS(t, acquire, l) && GRANTS(t, l) && !HAS(t, granted, l), ("master %d: acquire of lease %d, again\n", t, l), execute_acquire())
#endif
#ifndef NO_EXTEND
  :: STEP(HAS(t, extend, l), ("master %d: extension of lease %d\n", t, l), execute_extension())
#ifdef JUMPS
  :: STEP(HAS(t, extend, l) && ON(t, l) && PASSED(m[t].ttl) && lease[l].phase == HOLDING, ("master %d misses lease %d\n", t, l),
    TAKE(t, extend, l); PUT(t, missing, l))
#endif
  :: STEP(REPAIRABLE(t, l), ("master %d: repair of lease %d sent\n", t, l), PUT(t, repair, l); TAKE(t, missing, l))
  :: STEP(HAS(t, repair, l) && (ON(t, l) || FREE(t)) && CONFIRMS(t, lease[l].config), ("master %d: lease %d repaired\n", t, l),
    TAKE(t, repair, l); m[t].ttl = MAX((ON(t, l) -> m[t].ttl : 0), REMAINS(TTL, TTL)); m[t].lock = ID(l); RAISE(m[t].fence, lease[l].ballot))
#endif
#ifdef IMPORT
  :: STEP(REPAIRABLE_IMPORT(t, l), ("master %d: repair of the import of lease %d sent\n", t, l), PUT(t, repair, l); TAKE(t, absent, l))
#endif
  :: STEP(ON(t, l) && lease[l].phase == ENDED, ("master %d: release of lease %d\n", t, l), drop_lock(t))
  od
}
proctype Faults(byte t) {
  do
  :: false                    /* the do loop needs an option in configurations without faults */
#ifdef FORGET
  :: STEP(IN(t, FORGETS), ("master %d forgets\n", t), forget(t))
#endif
#ifdef EPOCHS
  :: STEP(m[t].epoch_age == 0 && !m[t].epoch_2 && !GIVEN_UP(t), ("master %d gets epoch 1\n", t), m[t].epoch_age = 1)
  :: STEP(MAY_FINISH(t) && IN(t, NEXT) && !m[t].final, ("master %d: the next masters may act alone\n", t), m[t].final = 1)
  :: STEP(MAY_USE_FINAL && !m[t].epoch_2 && !GIVEN_UP(t), ("master %d gets epoch 2\n", t),
    m[t].epoch_2 = 1; m[t].final = 1; m[t].epoch_age = SETTLED + 1)
#endif
#ifdef ABORT
  :: STEP(IN(t, NEXT) && !m[t].epoch_2 && !m[t].final && !GIVEN_UP(t) && (m[t].quarantine == 0 || WITHOUT == ABORT_QUARANTINE),
    ("master %d: the change is given up\n", t), m[t].closed = 1)
  :: STEP(CLOSED_SEEN && IN(t, OLD) && !m[t].epoch_2 && !m[t].final && !m[t].back,
    ("master %d: the old masters may act alone\n", t), m[t].back = 1; m[t].closed = 0)
#endif
  od
}
proctype Clock() {
  do
  :: STEP(true, ("one tick\n"), tick())
#ifdef EPOCHS
#if !defined(ABORT)
  :: STEP(IS_SETTLED && !settled, ("the operator sees that the joint configuration is in force\n"), settled = 1)
#endif
#endif
#ifdef PAUSED
  :: STEP(ALL_CLOSED && !given_up, ("the operator sees that the next masters are closed\n"), given_up = 1)
#endif
  od
}
init {
  atomic {
    for (j : 0 .. LEASES-1) { lease[j].phase = IDLE }
    run Clock();
    for (i : 0 .. M-1) { run Faults(i); for (j : 0 .. LEASES-1) { run Link(i, j) } }
    for (j : 0 .. LEASES-1) { run Client(j) }
    i = 0; j = 0
  }
}

/* admission.pml: which masters may vote, and the two durations in the admission record. Read common.pml first.
 *
 * RECORD. A master has no record, the record of another incarnation (FOREIGN), or its own record: in quarantine, or
 * voting. A record contains the max TTL that the master accepts, and the length of a quarantine. Each of these two numbers
 * is 1 (short) or 2 (long).
 *
 * CLIENTS read records, put a master without its own record into quarantine, and end quarantines. A client works on one
 * master at a time (its target). The client writes only if the record of the target is still the one that it has read. The
 * client's own max TTL is short (with -DNEW, the max TTL of client 1 is long; with -DALIKE, all are long). A client may
 * restart, and then knows nothing. A client that is frozen between reading and writing is modelled as taking no step.
 *
 * RAISE (-DOPERATOR). An operator raises the max TTL from short to long, and may stop at any point. Then another operator
 * may start again.
 *
 * FORGETTING. A master is flushed (no record, no leases), restarts (a foreign record, no leases), or comes back with an
 * old copy of its data (a foreign record with the short numbers). Without -DALIKE, this happens only while at most
 * FORGETFUL masters do not vote. -DFORGETS=n: at most n times in total, including restarts of clients.
 *
 * JUMPS (-DJUMPS). At any time, the clock of one master may jump, if the clocks of the other masters are right. It is then
 * ahead or behind by one tick, or far ahead. A quarantine begins at the latest clock that is not far ahead, and ends when
 * the earliest of these clocks is past its end. A master that is far ahead has lost its leases, and refuses all ballots
 * until its clock jumps back. This happens only after a client has replaced the master's record: a jump that no client sees
 * is a limit. Leases expire by the right time, because the other models have their two deadlines. With -DSKEW=n, the right
 * clock of one master is n ticks ahead of the other right clocks. With -DUNKNOWN, a client knows only the clocks of its
 * target and of one other master, which is the worse one.
 *
 * LEASES. Lease 0 has the long TTL and lease 1 the short TTL. A release reaches all masters immediately. Ballots and fences
 * are only in redlock.pml.
 *
 * CLAIMS   exclusion
 *          numbers    the max TTL of each voting master is at most the quarantine of each voting master
 */
#include "common.pml"
#define N 3
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifdef FORGETS
byte forgets = FORGETS;                    /* how often masters may still forget and clients restart */
#define ONCE_MORE forgets > 0
#define COUNT_IT forgets--
#else
#define ONCE_MORE true
#define COUNT_IT skip
#endif
#ifndef FORGETFUL
#define FORGETFUL 0
#endif
#ifdef ALIKE
#define MAX_TTL(c) 2
#elif defined(NEW)
#define MAX_TTL(c) ((c) + 1)
#else
#define MAX_TTL(c) 1
#endif
#define NONE 0
#define FOREIGN 1
#define QUARANTINED 2
#define VOTES 3

typedef Master {
#ifdef JUMPS
  short off, right;                        /* how far the clock is ahead, and how far it is if it is right */
#endif
  byte record, max_ttl, quarantine, age;   /* age: time since the quarantine began; with JUMPS 1 more */
  byte lock, ttl
}
typedef Lease { mtype phase; byte age, granted }  /* granted: masters that have granted it */
typedef Client {
  byte quarantine;                         /* largest quarantine that this client has read */
#ifdef NEW
  byte looked;                             /* masters that this client has read, with or without a record */
#endif
  byte target;                             /* N: none */
  bool same;                               /* the target has not forgotten since the client read its record */
  byte seen, long_ttl, votes               /* masters whose records this client has read since it first saw the quarantine
                                              of its target; of these, the masters with the long TTL, and the voters */
}
Master m[N];
Lease lease[2];
Client client[CLIENTS];
byte pass, done;                           /* pass of the raise: 0 none, 1 quarantines, 2 read again, 3 max TTLs; masters done */
byte kept;                                 /* masters that still have the record that pass 1 has written */
#ifdef NO_NUMBERS
#define numbers true
#else
hidden byte numbers;
#endif

#define BIT(set, t) (((set) >> (t)) & 1)
#define SIZE(set) (BIT(set, 0) + BIT(set, 1) + BIT(set, 2))
#define OWN(t) (m[t].record >= QUARANTINED)
/* Lease 0 has the long TTL; with ALIKE, lease 1 has the long TTL, too. */
#define LASTS_FOR(l) (IS_ALIKE -> 2 : 2 - (l))
#ifdef JUMPS
#ifndef SKEW
#define SKEW 0
#endif
#define AHEAD 3                            /* of a clock that is far ahead */
#define FAR(t) (m[t].off == AHEAD)
#define WRONG(t) (m[t].off != m[t].right)
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MEDIAN MAX(MIN(m[0].off, m[1].off), MIN(MAX(m[0].off, m[1].off), m[2].off))
#define CLOCK(t) (FAR(t) -> MEDIAN : m[t].off)
#define OTHER(t) CLOCK((t + 1) % N)
#define THIRD(t) CLOCK((t + 2) % N)
#ifdef UNKNOWN
#define LATEST(t) MAX(m[t].off, MIN(OTHER(t), THIRD(t)))
#define EARLIEST(t) MIN(m[t].off, MAX(OTHER(t), THIRD(t)))
#else
#define LATEST(t) MAX(m[t].off, MAX(OTHER(t), THIRD(t)))
#define EARLIEST(t) MIN(m[t].off, MIN(OTHER(t), THIRD(t)))
#endif
#define BEGINS(t) m[t].age = 1 - (WITHOUT == LATER_BEGIN -> m[t].off : LATEST(t))
#define LASTED(t) (m[t].age - 1 + (WITHOUT == EARLIER_END -> m[t].off : \
  (WITHOUT == EARLIEST_END -> MIN(m[t].off, MEDIAN) : EARLIEST(t))))
#define OLDEST 4
#define EXCHANGE_CLOCKS(a, b) SWAP(off, a, b); SWAP(right, a, b);
#define CLOCK_KEY(t) (((m[t].off + 1) << 20) | (m[t].right << 23) | ((m[t].age >> 2) << 26))
#else
#define FAR(t) false
#define BEGINS(t) m[t].age = 0
#define LASTED(t) m[t].age
#define OLDEST 2
#define EXCHANGE_CLOCKS(a, b)
#define CLOCK_KEY(t) 0
#endif
#define SILENT(t) (m[t].record != VOTES || FAR(t))
#define NOT_VOTING (SILENT(0) + SILENT(1) + SILENT(2))
#define MAY_FORGET (IS_ALIKE || NOT_VOTING <= FORGETFUL)
#ifdef ALIKE
#define IS_ALIKE true
#else
#define IS_ALIKE false
#endif
#define ACCEPTS(t, l) (!SILENT(t) && (m[t].max_ttl >= LASTS_FOR(l) || WITHOUT == TTL_LIMIT))
#define HELD(l) (lease[l].phase == HOLDING)

/* A client writes the largest numbers that it has read. If it has read no record, it writes its own max TTL if it has
 * looked at a quorum, and otherwise the shortest. The script keeps larger numbers of the old record. */
#ifdef NEW
#define FIRST(c) (SIZE(client[c].looked) >= 2 -> MAX_TTL(c) : 1)
#define LOOK(c, t) client[c].looked = client[c].looked | (1 << t)
#define FORGET_LOOKS(c) client[c].looked = 0
#define EXCHANGE_LOOKS(c, a, b) EXCHANGE(client[c].looked, a, b)
#else
#define FIRST(c) 1
#define LOOK(c, t) skip
#define FORGET_LOOKS(c) skip
#define EXCHANGE_LOOKS(c, a, b) skip
#endif
/* An admitted master gets the max TTL of the voting masters whose records the client has read since it first saw the
 * quarantine. If there is no such master, it gets the max TTL that a quorum of records has. */
#define SHORT(c) (client[c].seen & ~client[c].long_ttl)
#define AGREED_TTL(c) (client[c].votes > 0 -> ((client[c].votes & client[c].long_ttl) > 0 -> 2 : 1) : \
  (SIZE(client[c].long_ttl) >= 2 -> 2 : (SIZE(SHORT(c)) >= 2 -> 1 : 0)))
#define WRITTEN_TTL(c) (WITHOUT == LARGEST_NUMBERS || client[c].seen == 0 -> FIRST(c) : (client[c].long_ttl > 0 -> 2 : 1))
#define LASTS(c) MAX(MAX_TTL(c), (WITHOUT == LARGEST_NUMBERS -> 0 : client[c].quarantine))

inline forget(t) {
  m[t].lock = 0; m[t].ttl = 0; m[t].age = 0; kept = kept & ~(1 << t);
  for (j : 0 .. CLIENTS-1) { if :: client[j].target == t -> client[j].same = false :: else fi }
}
#define SET(c, set, t, bit) client[c].set = (client[c].set & ~(1 << t)) | ((bit) << t)
inline no_evidence(c) { client[c].seen = 0; client[c].long_ttl = 0; client[c].votes = 0 }
inline read_record(c, t) {
  LOOK(c, t);
  if :: t == client[c].target && !client[c].same -> client[c].same = true; no_evidence(c) :: else fi;
  if
  :: m[t].record != NONE ->
     client[c].quarantine = MAX(client[c].quarantine, MAX(m[t].max_ttl, m[t].quarantine));
     if
     :: client[c].target != N ->
        SET(c, seen, t, true); SET(c, long_ttl, t, m[t].max_ttl == 2); SET(c, votes, t, m[t].record == VOTES)
     :: else
     fi
  :: else
  fi
}
inline no_target(c) { client[c].target = N; client[c].same = false; no_evidence(c) }
#define WRITE(t, a, b) m[t].max_ttl = MAX(m[t].max_ttl, a); m[t].quarantine = MAX(m[t].quarantine, b)
inline next_pass() {
  if :: pass == 3 -> pass = 0; kept = 0 :: pass == 1 && (WITHOUT == RAISE_LOOKS || WITHOUT == RAISE_ORDER) -> pass = 3 :: else -> pass++ fi;
  if :: pass == 3 -> kept = 0 :: else fi
}
inline drop(l) {
  for (j : 0 .. N-1) { if :: m[j].lock == l + 1 -> m[j].lock = 0; m[j].ttl = 0 :: else fi }
  lease[l].phase = IDLE; lease[l].age = 0; lease[l].granted = 0
}
#define KEY(t) (m[t].record | (m[t].max_ttl << 2) | (m[t].quarantine << 4) | ((m[t].age & 3) << 6) | (m[t].lock << 8) | (m[t].ttl << 10) | \
  (BIT(lease[0].granted, t) << 12) | (BIT(lease[1].granted, t) << 13) | (BIT(kept, t) << 14) | (BIT(done, t) << 15) | \
  (BIT(client[0].seen, t) << 16) | ((client[0].target == t) << 17) | (BIT(client[0].long_ttl, t) << 18) | (BIT(client[0].votes, t) << 19) | CLOCK_KEY(t))
#define EXCHANGE(set, a, b) set = (set & ~((1 << a) | (1 << b))) | (BIT(set, a) << b) | (BIT(set, b) << a)
#define SORT(a, b) if :: KEY(a) > KEY(b) -> SWAP(record, a, b); SWAP(max_ttl, a, b); SWAP(quarantine, a, b); SWAP(age, a, b); EXCHANGE_CLOCKS(a, b) \
    SWAP(lock, a, b); SWAP(ttl, a, b); EXCHANGE(kept, a, b); EXCHANGE(done, a, b); \
    EXCHANGE(lease[0].granted, a, b); EXCHANGE(lease[1].granted, a, b); \
    for (j : 0 .. CLIENTS-1) { \
      EXCHANGE(client[j].seen, a, b); EXCHANGE(client[j].long_ttl, a, b); EXCHANGE(client[j].votes, a, b); EXCHANGE_LOOKS(j, a, b); \
      client[j].target = (client[j].target == a -> b : (client[j].target == b -> a : client[j].target)) \
    } :: else fi
inline normalize() {
  CLAIM(exclusion, !(HELD(0) && HELD(1)));
  for (j : 0 .. N-1) {
    if :: m[j].record != QUARANTINED -> m[j].age = 0 :: else fi
    for (k : 0 .. N-1) { CLAIM(numbers, m[j].record != VOTES || m[k].record != VOTES || m[j].max_ttl <= m[k].quarantine) }
  }
#ifndef NAMES
  SORT(0, 1); SORT(1, 2); SORT(0, 1);
#endif
  j = 0; k = 0
}

inline grant(t, l) { m[t].lock = l + 1; m[t].ttl = LASTS_FOR(l); lease[l].granted = lease[l].granted | (1 << t) }
inline put_into_quarantine(c, t) {
  m[t].record = QUARANTINED; WRITE(t, WRITTEN_TTL(c), LASTS(c)); forget(t); BEGINS(t); read_record(c, t)
}
inline admit(c, t) {
  read_record(c, t);
  k = (WITHOUT == AGREEMENT -> MAX(m[t].max_ttl, WRITTEN_TTL(c)) : AGREED_TTL(c));
  m[t].record = VOTES; m[t].max_ttl = k; m[t].quarantine = MAX(m[t].quarantine, LASTS(c)); no_target(c)
}
inline raise_quarantine(t) { WRITE(t, 0, 2); done = done | (1 << t); kept = kept | (1 << t) }
inline raise_max_ttl(t) { WRITE(t, 2, 0); done = done | (1 << t) }
inline tick() {
  for (j : 0 .. N-1) {
    if :: m[j].ttl > 0 -> m[j].ttl--; if :: m[j].ttl == 0 -> m[j].lock = 0 :: else fi :: else fi;
    if :: m[j].age < OLDEST -> m[j].age++ :: else fi
  }
  for (k : 0 .. 1) {
    if :: lease[k].phase != IDLE -> lease[k].age++; if :: lease[k].age >= LASTS_FOR(k) -> drop(k) :: else fi :: else fi
  }
}

#ifndef NO_LEASES
proctype Caller(byte l) {
  do
  :: STEP(lease[l].phase == IDLE && NOT_VOTING < 2, ("lease %d: acquire\n", l), lease[l].phase = ACQUIRING)
  :: STEP(lease[l].phase == ACQUIRING && SIZE(lease[l].granted) >= 2, ("lease %d: held\n", l),
    lease[l].phase = HOLDING; lease[l].granted = 0)
  :: STEP(lease[l].phase != IDLE, ("lease %d: ended\n", l), drop(l))
  od
}
proctype Link(byte t; byte l) {
  do
  :: STEP(lease[l].phase == ACQUIRING && ACCEPTS(t, l) && m[t].lock == 0, ("master %d grants lease %d\n", t, l), grant(t, l))
  od
}
#endif
proctype Admission(byte c; byte t) {
  do
  :: STEP(client[c].target == N, ("client %d: looks after master %d\n", c, t), client[c].target = t; read_record(c, t))
  :: STEP(client[c].target != N, ("client %d: reads the record of master %d\n", c, t), read_record(c, t))
  :: STEP(client[c].target == t && client[c].same && !OWN(t) && !FAR(t),
      ("client %d: starts the quarantine of master %d\n", c, t), put_into_quarantine(c, t))
  :: STEP(client[c].target == t && (client[c].same || WITHOUT == RECORD_COMPARE) && m[t].record == QUARANTINED &&
      (SIZE(client[c].seen) >= 2 || WITHOUT == QUORUM_READ) && (AGREED_TTL(c) > 0 || WITHOUT == AGREEMENT) &&
      !FAR(t) && LASTED(t) >= (WITHOUT == QUARANTINE_WANTED -> m[t].quarantine : MAX(m[t].quarantine, LASTS(c))),
      ("client %d: ends the quarantine of master %d\n", c, t), admit(c, t))
#ifdef JUMPS
  :: STEP(client[c].target == t && client[c].same && m[t].record == VOTES && FAR(t),
      ("client %d: replaces the record of master %d\n", c, t), m[t].record = FOREIGN; WRITE(t, WRITTEN_TTL(c), LASTS(c)); forget(t))
#endif
  od
}
proctype Restarts(byte c) {
  do
  :: STEP(ONCE_MORE, ("client %d: restarts\n", c),
    COUNT_IT; no_target(c); client[c].quarantine = 0; FORGET_LOOKS(c))
  od
}
#ifdef OPERATOR
proctype Operator(byte t) {
  do
  :: STEP(t == 0 && pass == 0 && NOT_VOTING == 0, ("raise: begins\n"), pass = 1)
  :: STEP((pass == 1 || WITHOUT == RAISE_ORDER && pass == 3) && !BIT(done, t) && OWN(t), ("raise: quarantine of master %d\n", t), raise_quarantine(t))
  :: STEP(pass == 2 && !BIT(done, t) && BIT(kept, t), ("raise: master %d read again\n", t), done = done | (1 << t))
  :: STEP((pass == 3 || WITHOUT == RAISE_ORDER && pass == 1) && !BIT(done, t) && OWN(t),
    ("raise: max TTL of master %d\n", t), raise_max_ttl(t))
  :: STEP(t == 0 && pass > 0 && done == 7, ("raise: next pass\n"), done = 0; next_pass())
  :: STEP(t == 0 && pass > 0, ("raise: stopped\n"), pass = 0; done = 0; kept = 0)
  od
}
#endif
proctype Faults(byte t) {
  do
  :: STEP(ONCE_MORE && MAY_FORGET && m[t].record != NONE, ("master %d is flushed\n", t),
    COUNT_IT; m[t].record = NONE; m[t].max_ttl = 0; m[t].quarantine = 0; forget(t))
  :: STEP(ONCE_MORE && MAY_FORGET && OWN(t), ("master %d restarts\n", t), COUNT_IT; m[t].record = FOREIGN; forget(t))
  :: STEP(ONCE_MORE && MAY_FORGET && OWN(t) && m[t].max_ttl == 2, ("master %d restarts with an old copy of its data\n", t),
    COUNT_IT; m[t].record = FOREIGN; m[t].max_ttl = 1; m[t].quarantine = 1; forget(t))
  od
}
#ifdef JUMPS
proctype Jumps(byte t) {
#define JUMP(to) STEP(WRONG(0) + WRONG(1) + WRONG(2) - WRONG(t) == 0 && m[t].off != to && \
    (!FAR(t) || m[t].record != VOTES || WITHOUT == JUMP_QUARANTINE), ("master %d: its clock jumps to %d\n", t, to), m[t].off = to)
  do
  :: JUMP(-1)
  :: JUMP(0)
  :: JUMP(1)
  :: STEP(ONCE_MORE && MAY_FORGET && WRONG(0) + WRONG(1) + WRONG(2) - WRONG(t) == 0 && !FAR(t), ("master %d: its clock jumps far ahead\n", t),
    COUNT_IT; m[t].off = AHEAD; m[t].lock = 0; m[t].ttl = 0)
  od
}
#endif
proctype Clock() { do :: STEP(true, ("one tick\n"), tick()) od }
init {
  atomic {
#ifndef NEW
    for (k : 0 .. N-1) { m[k].record = VOTES; m[k].max_ttl = (IS_ALIKE -> 2 : 1); m[k].quarantine = (IS_ALIKE -> 2 : 1) }
#endif
    for (k : 0 .. CLIENTS-1) { no_target(k); run Restarts(k) }
    lease[0].phase = IDLE; lease[1].phase = IDLE;
#ifdef JUMPS
    m[2].off = SKEW; m[2].right = SKEW;
    run Jumps(0); run Jumps(1); run Jumps(2);
#endif
    run Clock();
    for (k : 0 .. N-1) {
      run Admission(0, k); run Faults(k);
#if CLIENTS == 2
      run Admission(1, k);
#endif
#ifdef OPERATOR
      run Operator(k)
#endif
    }
#ifndef NO_LEASES
    for (k : 0 .. N-1) { run Link(k, 0); run Link(k, 1) }
    run Caller(0); run Caller(1)
#endif
  }
}

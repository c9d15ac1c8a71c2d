/* sharding.pml: clients with different numbers of shards, and an operator who changes the number. Read common.pml first.
 *
 * LAYOUTS. A client of layout 0 has the old number of shards, a client of layout 1 the new one. OLD_MASTERS and NEW_MASTERS
 * are the masters of the layouts, OLD_SHARD and NEW_SHARD those of the shard to which the name belongs, as sets of bits.
 * Each other master is a shard of its own. The masters that only layout 0 has are given up by the change.
 *
 * RECORD. A master has no record, or a record with a layout. The record is of an earlier incarnation (OLD), in quarantine,
 * or voting. The record of a master that an operator has CLOSED names no shard, so no client accepts it.
 *
 * QUARANTINE. It ends at any time after the end of all leases that were held when it began: admission.pml models its length.
 *
 * CLIENTS. A client remembers only the records that it has read on its present connections. These facts may be outdated: a
 * client may be suspended for any time. A connection may end at any time and be made again, or not be made for any time.
 * A client ends a quarantine
 *   - if a majority of the master's shard shows that it was admitted with the client's layout, or
 *   - if all masters of the shard show the layout, and no master shows another one, and either some master of any shard
 *     shows that it was admitted with this layout, or all masters of all shards show it.
 * "Shows" means: on the present connection, and read since the client first saw the quarantine.
 *
 * OPERATOR. "redlock admit" with another layout writes the records of all masters, as the comment at the process Operator
 * says. It may stop after any step, and may be run again.
 *
 * BOUNDS. One client with each layout; N masters; the two shards of the name have no master in common (with a common master,
 * that master's record decides, as in lists.pml). All masters of the same shard but the name's are one master. A round of
 * an acquire, and the look for leases, are one step. The operator begins at most -DCHANGES=n changes (1), and at most
 * -DFORGETS=n times in total (0) a master forgets everything or restarts with its data.
 *
 * SWITCHES
 *   -DEMPTY        no master has a record: the first start of clients with different layouts
 *   -DAFTER        the change is complete. Client 0 was suspended or cut off during the change, and believes what it has read
 *   -DLEFT=set     with AFTER: these given-up masters still have their old records, because the change did not reach them
 *   -DNO_CUT       no client is cut off from a master for as long as a quarantine
 *   -DONE_NUMBER   both layouts have the same number of shards, with different masters
 *
 * CLAIM    exclusion     at most one client holds the name
 */
#include "common.pml"
#ifndef N
#define N 3
#endif
#ifndef OLD_MASTERS
#define OLD_MASTERS 7
#define OLD_SHARD 4
#define NEW_MASTERS 3
#define NEW_SHARD 1
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef LEFT
#define LEFT 0
#endif
#ifndef CHANGES
#define CHANGES 1
#endif
#define ALL ((1 << N) - 1)

#define NONE 0
#define OLD 1
#define QUARANTINED 2
#define VOTES 3

#define CLOSED 2                           /* the layout of a record that no client accepts */

typedef Master { byte state, layout, waits }    /* waits: clients whose leases are older than the quarantine */
typedef Fact {
  bool up;
  byte state, layout;                      /* the last record that was read */
  bool same;                               /* the master's record is still the one that was read */
  byte since                               /* masters read since this master's quarantine was first seen */
}
typedef Client { Fact at[N]; bool holds; byte named; bool begun }   /* named, begun: only in mutants */
Master m[N];
Client client[2];
byte forgets = FORGETS, changes = CHANGES;
byte pass, done;                           /* pass of the operator (0: none), and the masters that it has dealt with */
bool target;

#define BIT(set, t) (((set) >> (t)) & 1)
#define AT(c, t) client[c].at[t]
#define MASTERS(layout) ((layout) == 0 -> OLD_MASTERS : NEW_MASTERS)
#define NAMED_SHARD(layout) ((layout) == 0 -> OLD_SHARD : NEW_SHARD)
#define SHARD(layout, t) (BIT(MASTERS(layout), t) == 0 -> 0 : (BIT(NAMED_SHARD(layout), t) -> NAMED_SHARD(layout) : 1 << (t)))
#define FIRST_PASS (WITHOUT == CLOSED_FIRST -> 3 : 1)
#define SECOND_PASS (WITHOUT == READ_AGAIN -> 3 : 2)

/* A client compares the shard, the number of shards, and the masters of the shard with those in a record. */
#ifdef ONE_NUMBER
#define IS_ONE_NUMBER true
#else
#define IS_ONE_NUMBER false
#endif
#define SAME_TEXT(c, t, its) ((its) == c || \
  (WITHOUT == LAYOUT_IN_TEXT || IS_ONE_NUMBER) && (its) != CLOSED && SHARD(its, t) == SHARD(c, t))
#if N == 2
#define COLLECT(what, c, i) (what(c, i, 0) | (what(c, i, 1) << 1))
#define SIZE(set) (BIT(set, 0) + BIT(set, 1))
#elif N == 3
#define COLLECT(what, c, i) (what(c, i, 0) | (what(c, i, 1) << 1) | (what(c, i, 2) << 2))
#define SIZE(set) (BIT(set, 0) + BIT(set, 1) + BIT(set, 2))
#else
#define COLLECT(what, c, i) (what(c, i, 0) | (what(c, i, 1) << 1) | (what(c, i, 2) << 2) | (what(c, i, 3) << 3))
#define SIZE(set) (BIT(set, 0) + BIT(set, 1) + BIT(set, 2) + BIT(set, 3))
#endif
#define MAJORITY(set, of) (2 * SIZE((set) & (of)) > SIZE(of))
#define IN(c, t) BIT(MASTERS(c), t)
#define SHOWN(c, t) (IN(c, t) && AT(c, t).up && AT(c, t).state != NONE)
#define FRESH(c, i, t) (SHOWN(c, t) && SAME_TEXT(c, t, AT(c, t).layout) && \
  (i == t || BIT(AT(c, i).since, t) || WITHOUT == FRESH_RECORDS))
#define FRESH_VOTER(c, i, t) (FRESH(c, i, t) && (AT(c, t).state == VOTES || AT(c, t).state == OLD))
#define OTHER(c, i, t) (SHOWN(c, t) && !SAME_TEXT(c, t, AT(c, t).layout))
/* All leases have ended that were held when the quarantine of master t began. */
#define OVER(t) (m[t].state != QUARANTINED || m[t].waits == 0)

#define NO_OTHER(c, i) (COLLECT(OTHER, c, i) == 0)
#define BEGUN(c, i) (COLLECT(FRESH_VOTER, c, i) != 0)
#define ALL_SHOW(c, i) (COLLECT(FRESH, c, i) == MASTERS(c))
#define REMEMBERS(c) (client[c].begun || client[c].named == MASTERS(c))
#if WITHOUT == SHOWN_NOW                   /* the memory of a client is believed over what masters show */
#define MAY_BEGIN(c, i) (REMEMBERS(c) || NO_OTHER(c, i) && (BEGUN(c, i) || ALL_SHOW(c, i)))
#define NO_STRANGER(c, i) (REMEMBERS(c) || NO_OTHER(c, i))
#elif WITHOUT == NO_MEMORY                 /* the memory of a client is believed if no master shows anything else */
#define MAY_BEGIN(c, i) (NO_OTHER(c, i) && (REMEMBERS(c) || BEGUN(c, i) || ALL_SHOW(c, i)))
#define NO_STRANGER(c, i) NO_OTHER(c, i)
#elif WITHOUT == ALL_MUST_SHOW
#define MAY_BEGIN(c, i) NO_OTHER(c, i)
#define NO_STRANGER(c, i) NO_OTHER(c, i)
#elif WITHOUT == OTHER_LAYOUT
#define MAY_BEGIN(c, i) (BEGUN(c, i) || ALL_SHOW(c, i))
#define NO_STRANGER(c, i) true
#else
#define MAY_BEGIN(c, i) (NO_OTHER(c, i) && (BEGUN(c, i) || ALL_SHOW(c, i)))
#define NO_STRANGER(c, i) NO_OTHER(c, i)
#endif
/* A majority of the shard of master i has been admitted with the layout of client c, and shows it. */
#define ESTABLISHED(c, i) MAJORITY(COLLECT(FRESH_VOTER, c, i), SHARD(c, i))
#define SHARD_SHOWS(c, i) ((COLLECT(FRESH, c, i) & SHARD(c, i)) == SHARD(c, i))

#ifdef NO_CUT
#define READ(c, i, t) (IN(c, t) && AT(c, t).up && (i == t || BIT(AT(c, i).since, t)))
#define NOT_CUT_OFF(c, i) (COLLECT(READ, c, i) == MASTERS(c))
#else
#define NOT_CUT_OFF(c, i) true
#endif

#define UNCHANGED(c, t) (AT(c, t).up && AT(c, t).same)
#define GRANTS(c, i, t) (AT(c, t).up && m[t].state == VOTES && SAME_TEXT(c, t, m[t].layout))
#define WON(c) MAJORITY(COLLECT(GRANTS, c, 0), NAMED_SHARD(c))
#define HOLDERS (client[0].holds | (client[1].holds << 1))

inline normalize() {
  CLAIM(exclusion, HOLDERS != 3);
  for (j : 0 .. N-1) {
    if :: m[j].state == NONE -> m[j].layout = 0 :: else fi;
    if :: m[j].state != QUARANTINED -> m[j].waits = 0 :: else fi;
    for (k : 0 .. 1) {
      if :: !AT(k, j).up -> AT(k, j).same = 0; AT(k, j).state = NONE :: else fi;
      if :: AT(k, j).state == NONE -> AT(k, j).layout = 0 :: else fi;
      if :: AT(k, j).state != QUARANTINED || !AT(k, j).up -> AT(k, j).since = 0 :: else fi
    }
  }
  if :: pass == 0 -> done = 0 :: else fi;
  if :: pass == 0 && changes == 0 -> target = 0 :: else fi;
  i = 0; j = 0; k = 0
}

inline changed(t) { for (j : 0 .. 1) { AT(j, t).same = false } }
inline learn(c, t) {
  if :: !AT(c, t).same -> AT(c, t).since = 0 :: else fi;
  AT(c, t).up = true; AT(c, t).same = true; AT(c, t).state = m[t].state; AT(c, t).layout = m[t].layout;
  for (j : 0 .. N-1) { if :: j != t -> AT(c, j).since = AT(c, j).since | (1 << t) :: else fi }
#if WITHOUT == SHOWN_NOW || WITHOUT == NO_MEMORY
  if
  :: m[t].state != NONE && SAME_TEXT(c, t, m[t].layout) ->
     client[c].named = client[c].named | (1 << t);
     if :: m[t].state != QUARANTINED -> client[c].begun = 1 :: else fi
  :: else
  fi
#endif
}
inline quarantine(t, its) { m[t].state = QUARANTINED; m[t].layout = its; m[t].waits = HOLDERS }
inline start(c, t) { changed(t); quarantine(t, c); learn(c, t) }
inline admit(c, t) { k = AT(c, t).since; changed(t); AT(c, t).same = true; m[t].state = VOTES; learn(c, t) }
inline release(c) { client[c].holds = 0; for (j : 0 .. N-1) { m[j].waits = m[j].waits & ~(1 << (c)) } }

proctype Admission(byte c; byte t) {
  do
  :: STEP(true, ("client %d reads the record of master %d\n", c, t), learn(c, t))
  :: STEP(AT(c, t).up, ("client %d: the connection to master %d ends\n", c, t), AT(c, t).up = false)
  :: STEP(UNCHANGED(c, t) && (AT(c, t).state == NONE || AT(c, t).state == OLD && SAME_TEXT(c, t, AT(c, t).layout)) &&
      (ESTABLISHED(c, t) || NO_STRANGER(c, t)),
      ("client %d starts the quarantine of master %d\n", c, t), start(c, t))
  :: STEP(UNCHANGED(c, t) && AT(c, t).state == QUARANTINED && SAME_TEXT(c, t, AT(c, t).layout) && OVER(t) &&
      (ESTABLISHED(c, t) || SHARD_SHOWS(c, t) && MAY_BEGIN(c, t)) && NOT_CUT_OFF(c, t),
      ("client %d ends the quarantine of master %d\n", c, t), admit(c, t))
  od
}
proctype Caller(byte c) {
  do
  :: STEP(!client[c].holds && WON(c), ("client %d holds the name\n", c), client[c].holds = 1)
  :: STEP(client[c].holds, ("client %d releases the name\n", c), release(c))
  od
}
/* Pass 1 closes all masters. Pass 2 reads them again. Pass 3 writes the new layout to its masters, in quarantine. Pass 4
 * admits them at once if no master has a lease; otherwise their quarantines end as usual. */
#define CLOSES (WITHOUT == GIVEN_UP_CLOSED -> MASTERS(target) : (WITHOUT == NEW_CLOSED -> MASTERS(1 - target) : ALL))
#define WRITES (WITHOUT == CLOSED_FIRST -> ALL : MASTERS(target))
#define SHOWS_TEXT(t, its) (m[t].state != NONE && m[t].layout == its)
#define NEXT_PASS(from, to) STEP(t == 0 && pass == from && done == CLOSES, ("admit: pass %d\n", to), pass = to; done = 0)
proctype Operator(byte t) {
  do
#if CHANGES > 0
  :: STEP(t == 0 && pass == 0 && changes > 0, ("admit: layout %d\n", 1 - target),
    changes--; pass = FIRST_PASS; target = 1 - target)
#endif
  :: STEP(pass == 1 && BIT(CLOSES, t) && !BIT(done, t), ("admit: master %d is closed\n", t),
    done = done | (1 << t); if :: SHOWS_TEXT(t, CLOSED) -> skip :: else -> changed(t); quarantine(t, CLOSED) fi)
  :: NEXT_PASS(1, SECOND_PASS)
  :: STEP(pass == 2 && SHOWS_TEXT(t, CLOSED) && BIT(CLOSES, t) && !BIT(done, t), ("admit: master %d is read again\n", t),
    done = done | (1 << t))
  :: NEXT_PASS(2, 3)
  :: STEP(pass == 3 && BIT(WRITES, t) && !BIT(done, t), ("admit: master %d gets the new layout\n", t),
    done = done | (1 << t); if :: SHOWS_TEXT(t, target) -> skip :: else -> changed(t); quarantine(t, target) fi)
  :: STEP(t == 0 && pass == 3 && done == WRITES && (HOLDERS == 0 || WITHOUT == LOOK_LAST),
    ("admit: no master has a lease\n"), pass = 4; done = 0)
  :: STEP(pass == 4 && SHOWS_TEXT(t, target) && m[t].state == QUARANTINED, ("admit: master %d admitted\n", t),
    changed(t); m[t].state = VOTES)
  :: STEP(t == 0 && pass > 0, ("admit: stopped\n"), pass = 0)
  od
}
#if FORGETS > 0
proctype Faults(byte t) {
  do
  :: STEP(forgets > 0 && m[t].state != NONE, ("master %d forgets everything\n", t), forgets--; m[t].state = NONE; changed(t))
  :: STEP(forgets > 0 && m[t].state == VOTES, ("master %d restarts with its data\n", t), forgets--; m[t].state = OLD; changed(t))
  od
}
#endif
init {
  atomic {
    for (k : 0 .. N-1) {
#ifdef AFTER
      if
      :: BIT(NEW_MASTERS, k) -> m[k].state = VOTES; m[k].layout = 1
      :: BIT(LEFT, k) -> m[k].state = VOTES
      :: else -> m[k].state = QUARANTINED; m[k].layout = CLOSED
      fi;
      if :: BIT(OLD_MASTERS, k) -> AT(0, k).up = true; AT(0, k).state = VOTES :: else fi;
#elif !defined(EMPTY)
      if :: BIT(OLD_MASTERS, k) -> m[k].state = VOTES :: else fi;
#endif
      run Operator(k);
#if FORGETS > 0
      run Faults(k);
#endif
      for (i : 0 .. 1) {
        if :: IN(i, k) -> run Admission(i, k) :: else fi
      }
    }
#if defined(AFTER) && (WITHOUT == SHOWN_NOW || WITHOUT == NO_MEMORY)
    client[0].begun = 1; client[0].named = OLD_MASTERS;
#endif
    run Caller(0); run Caller(1);
    i = 0; k = 0
  }
}

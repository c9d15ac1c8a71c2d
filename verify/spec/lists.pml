/* lists.pml: clients with different lists of masters. Read common.pml first.
 *
 * LISTS. Masters 0 and 1 are in both lists, master 2 only in the first, master 3 only in the second. The last client has
 * the second list, all other clients have the first. No operator changes the masters with "redlock set", which joint.pml
 * models.
 *
 * RECORD. A master has no record, or a record with the list of the client that wrote it. The record is of an earlier
 * incarnation (OLD), in quarantine, or voting. A quarantine may end at any time: admission.pml models its length.
 *
 * CLIENTS remember the last record that they have read from each master, and the state of the connection. A connection may
 * end at any time, and be made again. GONE: the master has been down for the length of a quarantine, or the client has not
 * reached it since the client's start.
 *
 * FAULTS   -DFORGETS=n   at most n times in total, a master forgets everything or restarts with its data, or a client restarts
 *          -DHANGS=n     n times, a master cannot be reached for longer than a quarantine, but loses no data
 *          -DSTART       a master cannot be reached for a moment while a client starts
 *          -DCUT         a client cannot reach some masters: the network is cut
 *
 * CLAIM    one_list      no majority of the first list votes for clients with the first list while a disjoint majority of
 *                        the second list votes for clients with the second list
 */
#include "common.pml"
#define N 4
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef HANGS
#define HANGS 0
#endif
#define IS_SECOND(c) ((c) == CLIENTS - 1)
#define IN_LIST(c, t) (t != (IS_SECOND(c) -> 2 : 3))

#define NONE 0
#define OLD 1
#define QUARANTINED 2
#define VOTES 3

#define NEVER 0                            /* not reached yet */
#define DOWN 1                             /* down for less than a quarantine */
#define GONE 2
#define UP 3

typedef Master { byte state; bool second; bool hung }    /* second: the record has the second list */
typedef Fact {
  byte link;
  byte state; bool second;                 /* the last record that was read */
  bool same;                               /* the master's record is still the one that was read */
  byte since                               /* masters read since this master's quarantine was first seen */
}
typedef Client { Fact at[N] }
Master m[N];
Client client[CLIENTS];
byte forgets = FORGETS, hangs = HANGS;
hidden byte one_list;
hidden byte first, second;

#define BIT(set, t) (((set) >> (t)) & 1)
#define AT(c, t) client[c].at[t]
/* A client compares the list in a record with its own list. */
#define SAME_LIST(c, its) ((its) == IS_SECOND(c) || WITHOUT == MASTER_LIST)
#define AGREES(c, t) (AT(c, t).state != NONE && SAME_LIST(c, AT(c, t).second))
#define OBJECTS(c, t) (AT(c, t).state != NONE && !AGREES(c, t))
#define SHOWS(c, t) (IN_LIST(c, t) && AT(c, t).link == UP && AGREES(c, t))
#define ADMITTED(c, t) (IN_LIST(c, t) && AGREES(c, t) && (AT(c, t).state == VOTES || AT(c, t).state == OLD))
#define SUM(what, c) (what(c, 0) + what(c, 1) + what(c, 2) + what(c, 3))
#define ESTABLISHED(c) (SUM(ADMITTED, c) >= 2)
#define OBJECTS_NOW(c, t) (IN_LIST(c, t) && OBJECTS(c, t) && AT(c, t).link == UP)
#define MAY_WRITE(c) (ESTABLISHED(c) || SUM(OBJECTS_NOW, c) == 0 || WITHOUT == FIRST_RECORDS)
#define UNKNOWN(c, t) (IN_LIST(c, t) && AT(c, t).link == NEVER)

/* Master t shows the list of client c, and was read since the client first saw the quarantine of master i. */
#define FRESH(c, i, t) (SHOWS(c, t) && (i == t || BIT(AT(c, i).since, t)))
#define FRESH_ONES(c, i) (FRESH(c, i, 0) + FRESH(c, i, 1) + FRESH(c, i, 2) + FRESH(c, i, 3))
/* Before the first masters of a list are admitted, each master of the list must show this list, unless it is GONE. */
#define SHOWN(c, i, t) (!IN_LIST(c, t) || FRESH(c, i, t) || AT(c, t).link == GONE || WITHOUT == FIRST_RECORDS || \
  AT(c, t).link == DOWN && WITHOUT == SHORT_OUTAGE)
#define ALL_SHOW(c, i) (SHOWN(c, i, 0) && SHOWN(c, i, 1) && SHOWN(c, i, 2) && SHOWN(c, i, 3))

#define VOTES_FOR(c, t) (IN_LIST(c, t) && m[t].state == VOTES && SAME_LIST(c, m[t].second))
#define VOTERS(c) (VOTES_FOR(c, 0) | (VOTES_FOR(c, 1) << 1) | (VOTES_FOR(c, 2) << 2) | (VOTES_FOR(c, 3) << 3))
#define SIZE(set) (BIT(set, 0) + BIT(set, 1) + BIT(set, 2) + BIT(set, 3))

#define SWAP_FACT(c, field) k = AT(c, 0).field; AT(c, 0).field = AT(c, 1).field; AT(c, 1).field = k
#define KEY(t) (m[t].state | (m[t].second << 2) | (m[t].hung << 3) | (AT(0, t).state << 4) | (AT(0, t).second << 6) | \
  (AT(0, t).link << 7) | (AT(0, t).same << 9))
inline normalize() {
  first = VOTERS(0); second = VOTERS(CLIENTS - 1);
  CLAIM(one_list, SIZE(first) < 2 || SIZE(second) < 2 || SIZE(first | second) < 4);
  for (j : 0 .. N-1) {
    if :: m[j].state == NONE -> m[j].second = 0 :: else fi;
    for (k : 0 .. CLIENTS-1) {
      if :: AT(k, j).state == NONE -> AT(k, j).second = 0 :: else fi;
      if :: AT(k, j).state != QUARANTINED || AT(k, j).link != UP -> AT(k, j).since = 0 :: else fi;
      if :: AT(k, j).link != UP -> AT(k, j).same = 0 :: else fi
    }
  }
#ifndef NAMES
  if
  :: KEY(0) > KEY(1) ->
     SWAP(state, 0, 1); SWAP(second, 0, 1); SWAP(hung, 0, 1);
     for (j : 0 .. CLIENTS-1) {
       SWAP_FACT(j, state); SWAP_FACT(j, second); SWAP_FACT(j, link); SWAP_FACT(j, same); SWAP_FACT(j, since);
       for (i : 0 .. N-1) {
         k = AT(j, i).since;
         AT(j, i).since = (k & 12) | (BIT(k, 0) << 1) | BIT(k, 1)
       }
     }
  :: else
  fi;
#endif
  i = 0; j = 0; k = 0; first = 0; second = 0
}

/* The record of master t has changed or was lost, so what the clients have read is outdated. */
inline changed(t) { for (j : 0 .. CLIENTS-1) { AT(j, t).same = false } }
inline learn(c, t) {
  if :: !AT(c, t).same -> AT(c, t).since = 0 :: else fi;
  AT(c, t).link = UP; AT(c, t).same = true; AT(c, t).state = m[t].state; AT(c, t).second = m[t].second;
  for (j : 0 .. N-1) { if :: j != t -> AT(c, j).since = AT(c, j).since | (1 << t) :: else fi }
}
inline write(c, t, what) {
  if :: what == QUARANTINED -> changed(t) :: else k = AT(c, t).since; changed(t); AT(c, t).same = true fi;
  m[t].state = what; m[t].second = IS_SECOND(c);
  learn(c, t)
}
#define UNCHANGED(c, t) (AT(c, t).link == UP && (AT(c, t).same || WITHOUT == RECORD_COMPARE) && !m[t].hung)

proctype Admission(byte c; byte t) {
  do
  :: STEP(!m[t].hung, ("client %d reads the record of master %d\n", c, t), learn(c, t))
  :: STEP(AT(c, t).link == UP, ("client %d: the connection to master %d ends\n", c, t), AT(c, t).link = DOWN)
#if HANGS > 0 || defined(CUT) || defined(START)
#ifdef CUT
#define GIVES_UP(c, t) (AT(c, t).link == DOWN || AT(c, t).link == NEVER)
#elif defined(START)
#define GIVES_UP(c, t) (AT(c, t).link == NEVER)
#else
#define GIVES_UP(c, t) (m[t].hung && (AT(c, t).link == DOWN || AT(c, t).link == NEVER))
#endif
  :: STEP(GIVES_UP(c, t), ("client %d does without master %d\n", c, t), AT(c, t).link = GONE)
#endif
  :: STEP(UNCHANGED(c, t) && (AT(c, t).state == NONE || AT(c, t).state == OLD && AGREES(c, t)) && m[t].state < QUARANTINED &&
      SUM(UNKNOWN, c) == 0 && MAY_WRITE(c),
      ("client %d starts the quarantine of master %d\n", c, t), write(c, t, QUARANTINED))
  :: STEP(UNCHANGED(c, t) && AT(c, t).state == QUARANTINED && AGREES(c, t) && m[t].state == QUARANTINED && MAY_WRITE(c) &&
      (FRESH_ONES(c, t) >= 2 || WITHOUT == QUORUM_READ) && (ESTABLISHED(c) || ALL_SHOW(c, t)),
      ("client %d ends the quarantine of master %d\n", c, t), write(c, t, VOTES))
  od
}
#if FORGETS > 0
proctype Forgets(byte t) {
  do
  :: STEP(forgets > 0 && m[t].state != NONE, ("master %d forgets everything\n", t), forgets--; m[t].state = NONE; changed(t))
  :: STEP(forgets > 0 && m[t].state >= QUARANTINED, ("master %d restarts with its data\n", t),
      forgets--; m[t].state = OLD; changed(t))
  od
}
proctype Restarts(byte c) {
  do
  :: STEP(forgets > 0, ("client %d restarts\n", c),
      forgets--; for (k : 0 .. N-1) { AT(c, k).link = NEVER; AT(c, k).state = NONE; AT(c, k).same = 0 })
  od
}
#endif
#if HANGS > 0
proctype Hangs(byte t) {
  do
  :: STEP(hangs > 0 && !m[t].hung, ("master %d cannot be reached\n", t), hangs--; m[t].hung = true)
  :: STEP(m[t].hung, ("master %d is back\n", t), m[t].hung = false)
  od
}
#endif
init {
  atomic {
#ifdef BEGUN
    for (k : 0 .. 2) { m[k].state = VOTES }
#endif
    for (k : 0 .. N-1) {
#if FORGETS > 0
      run Forgets(k);
#endif
#if HANGS > 0
      run Hangs(k);
#endif
      for (i : 0 .. CLIENTS-1) {
        if :: IN_LIST(i, k) -> run Admission(i, k) :: else fi
      }
    }
#if FORGETS > 0
    for (i : 0 .. CLIENTS-1) { run Restarts(i) }
#endif
    i = 0; k = 0
  }
}

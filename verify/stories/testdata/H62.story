# H62. The masters confirm, A's machine sleeps for a minute, and then the answers are read.
# What could go wrong: the call succeeds, with a lock that has ended meanwhile.
# What must hold: Lock, Extend, re-entry and import succeed only if validity is left when they return.
masters 3
----

program A B
----

# Lock: A sleeps between the masters' answers and their arrival. A undoes the attempt.
hold answers from 1-3 to A
----

A tries orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted

freeze A 1m
----

deliver answers from 1-3 to A
----
60.111 A cannot lock orders; the call ends after 60.011: lock "orders": quorum reached too late: -50.113001s of
        validity left of 10s, at least 5s wanted; 2 of 3 masters agreed, quorum is 2
60.112 A to masters 1-3: release orders of A1 -> was not there

who holds orders
----
at 60.120
  masters 1-3: free
  A does not hold it
  B does not hold it

# Extend.
A locks orders
----
60.121 A to masters 1-3: acquire orders for A2, 10s, ballot 60.120000 to 60.120032 -> granted
60.122 A has orders until 70.018, token 60.120000

hold answers from 1-3 to A
----

A extends orders
----
60.131 A to masters 1-3: extend orders for A2 by 10s -> done

freeze A 1m
----

deliver answers from 1-3 to A
----
120.141 A cannot extend orders; the call ends after 60.011: extend "orders": the lock was lost: no majority
        extended it in time; 2 of 3 masters agreed, quorum is 2
120.141 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

who holds orders
----
at 120.150
  masters 1-3: free
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B does not hold it

# Re-entry: the inner call fails, and the outer lock has ended, too.
A locks orders
----
120.151 A to masters 1-3: acquire orders for A3, 10s, ballot 120.150000 to 120.150032 -> granted
120.152 A has orders until 130.048, token 120.150000

hold answers from 1-3 to A
----

A locks orders again
----
120.161 A to masters 1-3: extend orders for A3 by 10s, depth 2 -> done

freeze A 1m
----

deliver answers from 1-3 to A
----
180.171 A cannot lock orders; the call ends after 60.011: re-enter "orders": the lock was lost: no majority
        extended it in time; 2 of 3 masters agreed, quorum is 2
180.171 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

who holds orders
----
at 180.180
  masters 1-3: free
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B does not hold it

# Import: A exports its lock to B, and B sleeps.
A locks orders
----
180.181 A to masters 1-3: acquire orders for A4, 10s, ballot 180.180000 to 180.180032 -> granted
180.182 A has orders until 190.078, token 180.180000

A exports orders
----
180.190 A learns that its lock of orders has ended: the lock was exported to another process

hold answers from 1-3 to B
----

B imports orders
----
180.201 B to masters 1-3: import orders for B1, 10s, ballot 180.200000 to 180.200032, instead of A4 -> granted

freeze B 1m
----

deliver answers from 1-3 to B
----

wait 2s
----
240.235 B cannot import orders; the call ends after 60.035: import "orders": the lock was lost
240.236 B to masters 1-3: release orders of B1 and A4, fence 180.200032 -> was not there

who holds orders
----
at 242.220
  masters 1-3: free
  A knows that its lock has ended: the lock was exported to another process
  B does not hold it

# H53. A master restarts empty under a lock.
# What could go wrong: the lock stands on three of five. One of the three has forgotten it, and grants the name to
# another, with the two that never had it: two holders.
# What must hold: a master that may have forgotten does not vote until nothing from before can be held: 30 s here.
masters 5
----

program A without=4,5
----

program B
----

A locks orders ttl=30s extension=off
----
0.201 A to masters 1-3: acquire orders for A1, 30s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 29.898, token 0.200000

who holds orders
----
at 0.210
  masters 1-3: A1 until 30.201
  masters 4-5: nobody
  A holds it until 29.898, on 3 of 5, token 0.200000
  B does not hold it

master 3 restarts empty
----

wait 1s
----
0.230 A to master 3: begin a quarantine -> done: in quarantine since 0.230835, one of 5, longest TTL 30s,
        quarantine 30s
0.230 B to master 3: begin a quarantine -> not done, the record has changed: in quarantine since 0.230835, one of
        5, longest TTL 30s, quarantine 30s

show B
----
  masters 1-2 4-5: voting
  master 3: quarantine for another 29.020

# Masters 1 and 2 have it for A, and master 3 does not vote. So no majority is left, and the call is decided before
# masters 4 and 5 are heard: they do not count as a yes, and what they have granted is released. The 30 s in the error
# are of B's last look at master 3, a second ago.
B tries orders ttl=30s
----
1.211 B to masters 1-2: acquire orders for B1, 30s, ballot 1.210000 to 1.210032 -> held by A1 for 28.990
1.211 B to masters 4-5: acquire orders for B1, 30s, ballot 1.210000 to 1.210032 -> granted
1.212 B cannot lock orders, and is told after 0.002: lock "orders": held by another; 0 of 5 masters said yes, 3
        are needed; held by "A" since 00:00:00; it may be free in 28.991s; master 3: lock: the master is in
        quarantine until 00:00:30 UTC by its clock, since it is new or may have forgotten locks
1.213 B to masters 4-5: release orders of B1 -> deleted

who holds orders
----
at 1.220
  masters 1-2: A1 until 30.201
  masters 3-5: nobody
  A holds it until 29.898, on 2 of 5, token 0.200000
  B does not hold it

# 30 s after the restart it votes again. By then A has been told.
wait 29s
----
29.898 A is told that its lock of orders has ended: the lock was lost: no majority extended it in time

who holds orders
----
at 30.220
  masters 1-5: nobody
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B does not hold it

wait 2s
----
30.232 A to master 3: end the quarantine -> done: admitted since 30.232837, one of 5, longest TTL 30s, quarantine
        30s
30.232 B to master 3: end the quarantine -> not done, the record has changed: admitted since 30.232837, one of 5,
        longest TTL 30s, quarantine 30s

show B
----
  masters 1-5: voting

B tries orders
----
32.221 B to masters 1-5: acquire orders for B2, 10s, ballot 32.220000 to 32.220032 -> granted
32.222 B has orders until 42.118, token 32.220000

who holds orders
----
at 32.230
  masters 1-5: B2 until 42.221
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B holds it until 42.118, on 5 of 5, token 32.220000

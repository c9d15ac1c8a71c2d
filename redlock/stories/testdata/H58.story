# H58. Two programs have different guard times: the longest lock that they reckon with when a master has forgotten.
# What could go wrong: the one with 5 s lets a forgetful master vote under the other's lock of 55 s.
# What must hold: the guard time stands on the masters and belongs to the fleet. The larger one holds.
masters 5 guard=1m
----

program A guard=1m without=4,5
----

program B guard=5s ttl=3s
----

A locks orders ttl=55s extension=off
----
0.201 A to masters 1-3: acquire orders for A1, 55s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 54.648, token 0.200000

# B is the one that meets the master that has forgotten.
cut A from 3
----

master 3 restarts empty
----

wait 31s
----
0.230 B to master 3: begin a quarantine -> done: in quarantine since 0.230835, one of 5, longest TTL 1m0s,
        quarantine 1m0s

show B
----
  masters 1-2 4-5: voting
  master 3: quarantine for another 29.020

B tries orders
----
31.211 B to masters 1-2: acquire orders for B1, 3s, ballot 31.210000 to 31.210032 -> held by A1 for 23.990
31.211 B to masters 4-5: acquire orders for B1, 3s, ballot 31.210000 to 31.210032 -> granted
31.212 B cannot lock orders, and is told after 0.002: lock "orders": held by another; 0 of 5 masters said yes, 3
        are needed; held by "A" since 00:00:00; it may be free in 23.991s; master 3: lock: the master is in
        quarantine until 00:01:00 UTC by its clock, since it is new or may have forgotten locks
31.213 B to masters 4-5: release orders of B1 -> deleted

who holds orders
----
at 31.220
  masters 1-2: A1 until 55.201
  masters 3-5: nobody
  A holds it until 54.648, on 2 of 5, token 0.200000
  B does not hold it

# When the minute is over, A's lock is, too.
wait 30s
----
54.648 A is told that its lock of orders has ended: the lock was lost: no majority extended it in time
60.232 B to master 3: end the quarantine -> done: admitted since 60.232837, one of 5, longest TTL 1m0s,
        quarantine 1m0s

show B
----
  masters 1-5: voting

B tries orders
----
61.221 B to masters 1-5: acquire orders for B2, 3s, ballot 61.220000 to 61.220032 -> granted
61.222 B has orders until 64.188, token 61.220000

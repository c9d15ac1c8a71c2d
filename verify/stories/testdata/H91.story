# H91. Two of three masters boot empty with clocks 14 s behind, which are corrected a little later.
# What could go wrong: by the right clock the quarantine began 14 s too early. It lasts 16 s instead of 30, and another
# client gets the name under a lock of 30 s.
# What must hold: a quarantine begins at the later of the master's own time and the median. Masters that are more than
# 15 s off the median begin and end none.
masters 3
----

program A B
----

A locks orders ttl=30s extension=off
----
0.101 A to masters 1-3: acquire orders for A1, 30s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 29.798, token 0.100000

cut A from 1-2
----

masters 1-2 are 14s behind
----

masters 1-2 restart empty
----

wait 5s
----
0.130 B to masters 1-2: begin a quarantine -> done: in quarantine since 0.129837, one of 3, longest TTL 30s,
        quarantine 30s
1.105 A to master 3: subscribe to its inbox -> done

masters 1-2 are right
----

wait 14s
----

B tries orders
----
19.110 B cannot lock orders; the call ends after 0.000: lock "orders": no quorum of masters; 1 of 3 masters can
        grant a lock, quorum is 2; master 1, master 2: lock: the master is in quarantine until 00:00:30 UTC by
        its clock, since it is new or may have forgotten locks; if no client can hold a lock on these masters,
        redlock admit (Admin.Admit) ends the quarantine

show B
----
  masters 1-2: quarantine for another 11.009
  master 3: voting

who holds orders
----
at 19.120
  masters 1-2: free
  master 3: A1 until 30.101
  A holds it until 29.798, on 1 of 3, token 0.100000
  B does not hold it

wait 12s
----
29.798 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time
30.131 B to masters 1-2: end the quarantine -> done: admitted since 30.131826, one of 3, longest TTL 30s,
        quarantine 30s

show B
----
  masters 1-3: voting

B tries orders
----
31.121 B to masters 1-3: acquire orders for B1, 10s, ballot 31.120000 to 31.120032 -> granted
31.122 B has orders until 41.018, token 31.120000

# H75. All masters restart empty while a lock of a minute is held. The first client that connects assumes a max TTL of
# 30 s.
# What could go wrong: it begins a quarantine of 30 s. After that other clients get the name, and the first holder,
# whose lock is valid for another 30 s by its own clock, is not notified.
# What must hold: a holder that sees that a majority of its masters are other servers now ends its lock at once.
masters 5 guard=1m
----

program A guard=1m ttl=1m
----

program B
----

A locks orders extension=off
----
0.201 A to masters 1-5: acquire orders for A1, 1m0s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 59.598, token 0.200000

slow A to 1-5 by=100ms
----

masters 1-5 restart empty
----

wait 1s
----
0.230 B to masters 1-5: begin a quarantine -> done: in quarantine since 0.230838, one of 5, longest TTL 30s,
        quarantine 30s
0.623 A learns that its lock of orders has ended: the lock was lost: too few masters still have it
0.923 A to masters 1-5: settle the max TTL -> done: in quarantine since 0.230838, one of 5, longest TTL 30s,
        quarantine 1m0s

show masters
----
  masters 1-5: in quarantine since 0.230838, one of 5, longest TTL 30s, quarantine 1m0s

wait 4s
----
1.234 B to masters 2-4: settle the max TTL -> not done, the record has changed: in quarantine since 0.230838, one
        of 5, longest TTL 30s, quarantine 1m0s

who holds orders
----
at 5.210
  masters 1-5: free
  A knows that its lock has ended: the lock was lost: too few masters still have it
  B does not hold it

# B could be the next holder only after the quarantine, which A has prolonged.
wait 26s
----

B tries orders
----
31.210 B cannot lock orders; the call ends after 0.000: lock "orders": no quorum of masters; 0 of 5 masters can
        grant a lock, quorum is 3; master 1, master 2, master 3, master 4, master 5: lock: the master is in
        quarantine until 00:01:00 UTC by its clock, since it is new or may have forgotten locks; if no client can
        hold a lock on these masters, redlock admit (Admin.Admit) ends the quarantine

wait 30s
----
60.231 B to masters 1-5: end the quarantine -> done: admitted since 60.231839, one of 5, longest TTL 30s,
        quarantine 1m0s
60.330 A to masters 1-5: end the quarantine -> not done, the record has changed: admitted since 60.231839, one of
        5, longest TTL 30s, quarantine 1m0s

B tries orders
----
61.221 B to masters 1-5: acquire orders for B1, 10s, ballot 61.220000 to 61.220032 -> granted
61.222 B has orders until 71.118, token 61.220000

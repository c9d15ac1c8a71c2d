# H84. An acquire has been on its way for two and a half minutes, in a deployment with a max TTL of five.
# What could go wrong: the window in which ballots are accepted grows with the max TTL, but the fences have expired. The
# old acquire wins, with a token below that of a later holder.
# What must hold: the window is 15 s and fences are kept for 60 s, regardless of the max TTL.
masters 3 guard=5m
----

program A B guard=5m
----

hold messages from A to 1-3
----

A tries orders within=400ms
----

wait 2s
----
0.500 A cannot lock orders; the call ends after 0.400: lock "orders": context deadline exceeded; 0 of 3 masters
        agreed, quorum is 2; master 1, master 2, master 3: lock: it has not answered for 400ms

B locks orders
----
2.111 B to masters 1-3: acquire orders for B1, 10s, ballot 2.110000 to 2.110032 -> granted
2.112 B has orders until 12.008, token 2.110000

B unlocks orders
----
2.121 B to masters 1-3: release orders of B1 -> deleted
2.122 B has unlocked orders

wait 150s
----

show masters
----
  masters 1-3: admitted since 0.000000, one of 3, longest TTL 5m0s, quarantine 5m0s

deliver messages from A to 1-3
----
152.131 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> stale, its ballot is long
        past
152.131 A to masters 1-3: release orders of A1 -> was not there
152.133 A to masters 1-3: release orders of A1, fence 0.100032 -> was not there

who holds orders
----
at 152.140
  masters 1-3: free
  A does not hold it
  B does not hold it

# H04. The context of a call ends while its messages are on their way.
# What could go wrong: the attempt is undone with the same context, which has ended, so it is not undone at all.
# What must hold: a rollback and a release are sent regardless of the caller's context. (Close: see H64.)
masters 3
----

program A
----

slow A to 1-3 by=100ms
----

A tries orders within=50ms
----

wait 1s
----
0.150 A cannot lock orders; the call ends after 0.050: lock "orders": context deadline exceeded; 0 of 3 masters
        agreed, quorum is 2; master 1, master 2, master 3: lock: it has not answered for 50ms
0.200 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.250 A to masters 1-3: release orders of A1 -> deleted

who holds orders
----
at 1.110
  masters 1-3: free
  A does not hold it

# The same with Unlock, and a context that was cancelled before.
slow A to 1-3 by=1ms
----

A locks orders
----
1.111 A to masters 1-3: acquire orders for A2, 10s, ballot 1.110000 to 1.110032 -> granted
1.112 A has orders until 11.008, token 1.110000

A unlocks orders cancelled
----
1.121 A to masters 1-3: release orders of A2 -> deleted
1.122 A has unlocked orders

who holds orders
----
at 1.130
  masters 1-3: free
  A does not hold it

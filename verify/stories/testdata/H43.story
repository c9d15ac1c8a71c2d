# H43. A lock is lost, and then it is released.
# What could go wrong: the release is repeated again and again, and its error hides the result of the caller's own work.
# What must hold: one round removes the remaining keys on the masters, and the error says that the lock was lost.
masters 3
----

program A
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

masters 1-2 lose orders
----

A unlocks orders
----
0.111 A to masters 1-2: release orders of A1 -> was not there
0.111 A to master 3: release orders of A1 -> deleted
0.112 A cannot unlock orders; the call ends after 0.002: unlock "orders": the lock was lost; 0 of 3 masters
        agreed, quorum is 2, and 2 did not have it

# The lock has expired, and A is cut off. The release is not repeated; the pending releases are sent when the
# connections are back.
A locks orders extension=off ttl=1s
----
0.121 A to masters 1-3: acquire orders for A2, 1s, ballot 0.120000 to 0.120032 -> granted
0.122 A has orders until 1.108, token 0.120000

wait 1s
----
1.108 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

cut A from 1-3
----

A unlocks orders
----
1.130 A cannot unlock orders; the call ends after 0.000: unlock "orders": the lock was lost: no majority extended
        it in time

wait 2s
----

join A to 1-3
----

wait 2s
----
3.403 A to masters 1-3: release orders of A2, fence 0.120032 -> was not there

# H01. The network delivers a message twice.
# What could go wrong: the second delivery counts as another lock, so that one unlock is not enough; or it prolongs the
# lock of a client that has gone.
# What must hold: a message that is delivered twice changes neither the state of a master nor its answer.
masters 3
----

program A
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

repeat acquire from A to 1-3
----
0.110 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted

A locks orders again
----
0.121 A to masters 1-3: extend orders for A1 by 10s, depth 2 -> done
0.122 A has orders until 10.018, token 0.100000

repeat acquire from A to 1-3
----
0.130 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted

who holds orders
----
at 0.140
  masters 1-3: A1 until 10.121, depth 2
  A holds it until 10.018, on 3 of 3, token 0.100000

A unlocks orders
----
0.141 A to masters 1-3: keep orders for A1, depth 1 -> done
0.142 A has unlocked orders

A unlocks orders
----
0.151 A to masters 1-3: release orders of A1 -> deleted
0.152 A has unlocked orders

repeat release from A to 1-3
----
0.160 A to masters 1-3: release orders of A1 -> was not there

repeat acquire from A to 1-3
----
0.170 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> stale, the fence is 0.100032

who holds orders
----
at 0.180
  masters 1-3: free
  A does not hold it

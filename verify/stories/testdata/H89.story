# H89. A waiter's attempt and its rollback are delayed, and arrive when the waiter has won by a later attempt.
# What could go wrong: both attempts have one id. The late release of the first deletes the lock that the second has
# won.
# What must hold: each attempt is a new lease with a new id, under the same ticket. A late release finds nothing.
masters 3
----

program A B
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

B locks orders
----
0.111 B to masters 1-3: acquire orders for B1, 10s, ballot 0.110000 to 0.110032 -> held by A1 for 9.990
0.115 B to masters 1-3: subscribe to its inbox -> done
0.117 B to masters 1-3: acquire orders for B2, 10s, ballot 0.116008 to 0.116040, waiter wB1 -> held by A1 for
        9.984; place 1 in the queue
0.119 B to masters 1-3: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> held by A1 for
        9.982; place 1 in the queue

hold messages from B to 3
----

wait 550ms
----

let messages from B to 3 pass
----

wait 1500ms
----
1.105 A to masters 1-3: subscribe to its inbox -> done
1.121 B to masters 1-3: acquire orders for B4, 10s, ballot 1.120012 to 1.120044, waiter wB1 -> held by A1 for
        8.980; place 1 in the queue
2.123 B to masters 1-3: acquire orders for B5, 10s, ballot 2.122014 to 2.122046, waiter wB1 -> held by A1 for
        7.978; place 1 in the queue

A unlocks orders
----
2.171 A to masters 1-3: release orders of A1 -> deleted
2.171 masters 1-3 to B: orders is free, and wB1 is first
2.172 A has unlocked orders
2.173 B to masters 1-3: acquire orders for B6, 10s, ballot 2.172002 to 2.172034, waiter wB1 -> granted
2.174 B has orders until 12.070, token 2.172002

who holds orders
----
at 2.180
  masters 1-3: B6 until 12.173
  A does not hold it
  B holds it until 12.070, on 3 of 3, token 2.172002

deliver messages from B to 3
----

who holds orders
----
at 2.190
  masters 1-3: B6 until 12.173
  A does not hold it
  B holds it until 12.070, on 3 of 3, token 2.172002

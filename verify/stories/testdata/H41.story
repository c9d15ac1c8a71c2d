# H41. Many goroutines of many clients wait for one name.
# What could go wrong: each release wakes all of them, and all of them attempt the lock.
# What must hold: each client sends attempts for one of its goroutines only. A release wakes one waiter.
masters 3
----

program A B C
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

B locks orders handoff=off
----
0.111 B to masters 1-3: acquire orders for B1, 10s, ballot 0.110000 -> held by A1 for 9.990
0.115 B to masters 1-3: subscribe to its inbox -> done
0.117 B to masters 1-3: acquire orders for B2, 10s, ballot 0.116008, waiter wB1 -> held by A1 for 9.984; place 1
        in the queue
0.119 B to masters 1-3: acquire orders for B3, 10s, ballot 0.118010, waiter wB1 -> held by A1 for 9.982; place 1
        in the queue

C locks orders handoff=off
----
0.121 C to masters 1-3: acquire orders for C1, 10s, ballot 0.120000 -> held by A1 for 9.980
0.125 C to masters 1-3: subscribe to its inbox -> done
0.127 C to masters 1-3: acquire orders for C2, 10s, ballot 0.126008, waiter wC1 -> held by A1 for 9.974; place 2
        in the queue
0.129 C to masters 1-3: acquire orders for C3, 10s, ballot 0.128010, waiter wC1 -> held by A1 for 9.972; place 2
        in the queue

B locks orders handoff=off
----

B locks orders handoff=off
----

show queues
----
  masters 1-3: 2 waiting: wB1, wC1

A unlocks orders
----
0.151 A to masters 1-3: release orders of A1 -> deleted
0.151 masters 1-3 to B: orders is free, and wB1 is first
0.152 A has unlocked orders
0.153 B to masters 1-3: acquire orders for B4, 10s, ballot 0.152002, waiter wB1 -> granted
0.154 B has orders until 10.050, token 0.152002

show queues
----
  masters 1-3: 1 waiting: wC1

B unlocks orders
----
0.161 B to masters 1-3: release orders of B4, waiter wB1 leaves -> deleted
0.161 masters 1-3 to C: orders is free, and wC1 is first
0.161 B to masters 1-3: acquire orders for B5, 10s, ballot 0.160000, waiter wB2 -> free, but another waiter is
        first for 1.000; place 2 in the queue
0.162 B has unlocked orders
0.163 C to masters 1-3: acquire orders for C4, 10s, ballot 0.162002, waiter wC1 -> granted
0.164 C has orders until 10.060, token 0.162002

C unlocks orders
----
0.171 masters 1-3 to B: orders is free, and wB2 is first
0.171 C to masters 1-3: release orders of C4, waiter wC1 leaves -> deleted
0.172 C has unlocked orders
0.173 B to masters 1-3: acquire orders for B6, 10s, ballot 0.172002, waiter wB2 -> granted
0.174 B has orders until 10.070, token 0.172002

who holds orders
----
at 0.180
  masters 1-3: B6 until 10.173
  A does not hold it
  B holds it until 10.070, on 3 of 3, token 0.172002
  C does not hold it

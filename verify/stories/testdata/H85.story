# H85. A waiter has given up, and its last attempt arrives after it has left.
# What could go wrong: the waiter is in the queue although no call waits, and each free name is reserved for it for a
# second.
# What must hold: a live client answers a wake-up without a waiter by leaving the queue, and the next waiter has its
# turn at once. Attempts older than 20 s put no waiter into the queue.
masters 3
----

program A B C
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

C locks orders
----
0.121 C to masters 1-3: acquire orders for C1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 9.980
0.125 C to masters 1-3: subscribe to its inbox -> done
0.127 C to masters 1-3: acquire orders for C2, 10s, ballot 0.126008 to 0.126040, waiter wC1 -> held by A1 for
        9.974; place 2 in the queue
0.129 C to masters 1-3: acquire orders for C3, 10s, ballot 0.128010 to 0.128042, waiter wC1 -> held by A1 for
        9.972; place 2 in the queue

B gives up orders
----
0.130 B cannot lock orders; the call ends after 0.020: lock "orders": context canceled (held by another); 0 of 3
        masters agreed, quorum is 2; held by "A" since 00:00:00; expires in 9.983s unless extended
0.131 B to masters 1-3: release orders, waiter wB1 leaves -> done

show queues
----
  masters 1-3: 1 waiting: wC1

repeat acquire from B to 1-3
----
0.140 B to masters 1-3: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> held by A1 for
        9.961; place 1 in the queue

show queues
----
  masters 1-3: 2 waiting: wB1, wC1

A unlocks orders
----
0.151 A to masters 1-3: release orders of A1 -> deleted
0.151 masters 1-3 to B: orders is free, and wB1 is first
0.152 A has unlocked orders
0.153 B to masters 1-3: release orders, waiter wB1 leaves -> done
0.153 masters 1-3 to C: orders is free, and wC1 is first
0.155 C to masters 1-3: acquire orders for C4, 10s, ballot 0.154004 to 0.154036, waiter wC1 -> granted
0.156 C has orders until 10.052, token 0.154004

show queues
----
  masters 1-3: no client waits

who holds orders
----
at 0.160
  masters 1-3: C4 until 10.155
  A does not hold it
  B does not hold it
  C holds it until 10.052, on 3 of 3, token 0.154004

C unlocks orders
----
0.161 C to masters 1-3: release orders of C4, waiter wC1 leaves -> deleted
0.162 C has unlocked orders

wait 20s
----

repeat acquire from B to 1-3
----
20.170 B to masters 1-3: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> stale, the fence
        is 0.154036

show queues
----
  masters 1-3: no client waits

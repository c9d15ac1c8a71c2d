# H40. A waiter is refused, and the name is released before the waiter's subscription is established.
# What could go wrong: no wake-up reaches the waiter, and it sleeps until some timeout.
# What must hold: a waiter subscribes first, and attempts the lock again when the subscription is established, also
# after a connection was lost. If wake-ups are lost nevertheless, a waiter that is first attempts the lock once a
# second.
masters 3
----

program A B
----

A locks orders extension=off ttl=30s
----
0.101 A to masters 1-3: acquire orders for A1, 30s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 29.798, token 0.100000

# B is far away. Its attempt takes 100 ms, and its subscription comes 200 ms later. The release falls in between.
slow B to 1-3 by=100ms
----

B locks orders
----

wait 200ms
----
0.210 B to masters 1-3: acquire orders for B1, 10s, ballot 0.110000 to 0.110032 -> held by A1 for 29.891

A unlocks orders
----
0.321 A to masters 1-3: release orders of A1 -> deleted
0.322 A has unlocked orders

wait 300ms
----
0.434 B to masters 1-3: acquire orders for B2, 10s, ballot 0.334674 to 0.334706 -> granted
0.534 B has orders until 10.232, token 0.334674
0.610 B to masters 1-3: subscribe to its inbox -> done

B unlocks orders
----

wait 300ms
----
0.730 B to masters 1-3: release orders of B2 -> deleted
0.830 B has unlocked orders

# The connections of a waiter are cut, and the name is released while it cannot receive messages.
slow B to 1-3 by=1ms
----

A locks orders extension=off ttl=30s
----
0.941 A to masters 1-3: acquire orders for A2, 30s, ballot 0.940000 to 0.940032 -> granted
0.942 A has orders until 30.638, token 0.940000

B locks orders
----
0.951 B to masters 1-3: acquire orders for B3, 10s, ballot 0.950000 to 0.950032, waiter wB1 -> held by A2 for
        29.990; place 1 in the queue

cut B from 1-3
----

A unlocks orders
----
0.961 A to masters 1-3: release orders of A2 -> deleted
0.962 A has unlocked orders

wait 200ms
----

join B to 1-3
----

wait 1s
----
1.176 B to masters 1-3: subscribe to its inbox -> done
1.180 B to masters 1-2: acquire orders for B4, 10s, ballot 1.179317 to 1.179349 -> granted
1.181 B has orders until 11.077, token 1.179317
1.182 B to masters 1-2: extend orders for B4 by 10s -> done
1.182 B to master 3: extend orders for B4 by 10s -> missing
1.184 B to master 3: repair orders for B4, 10s, ballot 1.183321, token 1.179317 -> granted

B unlocks orders
----
2.171 B to masters 1-2: release orders of B4 -> deleted
2.171 B to master 3: release orders of B4, fence 1.183321 -> deleted
2.172 B has unlocked orders

# The subscription is established, and the wake-ups are lost.
lose hints to B
----

A locks orders extension=off ttl=30s
----
2.181 A to masters 1-3: acquire orders for A3, 30s, ballot 2.180000 to 2.180032 -> granted
2.182 A has orders until 31.878, token 2.180000

B locks orders
----
2.191 B to masters 1-3: acquire orders for B5, 10s, ballot 2.190000 to 2.190032 -> held by A3 for 29.990
2.193 B to masters 1-3: acquire orders for B6, 10s, ballot 2.192002 to 2.192034, waiter wB2 -> held by A3 for
        29.988; place 1 in the queue

A unlocks orders
----
2.201 A to masters 1-3: release orders of A3 -> deleted
2.201 masters 1-3 to B: orders is free, and wB2 is first
2.202 A has unlocked orders

wait 2s
----
3.195 B to masters 1-3: acquire orders for B7, 10s, ballot 3.194004 to 3.194036, waiter wB2 -> granted
3.196 B has orders until 13.092, token 3.194004

# H82. A waits, and has won a minority meanwhile, on which the name is free.
# What could go wrong: A's rollback removes A from the queue there, so that other waiters are woken, and each waits for
# a quorum of wake-ups that no waiter gets.
# What must hold: a rollback keeps the ticket. A waiter attempts the lock shortly after the first wake-up, so a wake-up
# that is lost with a dead master costs milliseconds.
masters 5
----

program C without=4,5
----

program A B
----

C locks orders
----
0.201 C to masters 1-3: acquire orders for C1, 10s, ballot 0.200000 to 0.200032 -> granted
0.202 C has orders until 10.098, token 0.200000

A locks orders
----
0.211 A to masters 1-3: acquire orders for A1, 10s, ballot 0.210000 to 0.210032 -> held by C1 for 9.990
0.211 A to masters 4-5: acquire orders for A1, 10s, ballot 0.210000 to 0.210032 -> granted
0.213 A to masters 4-5: release orders of A1 -> deleted
0.215 A to masters 1-5: subscribe to its inbox -> done
0.217 A to masters 1-3: acquire orders for A2, 10s, ballot 0.216008 to 0.216040, waiter wA1 -> held by C1 for
        9.984; place 1 in the queue
0.217 A to masters 4-5: acquire orders for A2, 10s, ballot 0.216008 to 0.216040, waiter wA1 -> granted
0.219 A to masters 1-3: acquire orders for A3, 10s, ballot 0.218010 to 0.218042, waiter wA1 -> held by C1 for
        9.982; place 1 in the queue
0.219 A to masters 4-5: acquire orders for A3, 10s, ballot 0.218010 to 0.218042, waiter wA1 -> held by A2 for
        9.998; place 1 in the queue
0.219 masters 4-5 to A: orders is free, and wA1 is first
0.219 A to masters 4-5: release orders of A2, waiter wA1 stays -> deleted

wait 200ms
----
0.225 A to masters 1-3: acquire orders for A4, 10s, ballot 0.224013 to 0.224045, waiter wA1 -> held by C1 for
        9.976; place 1 in the queue
0.225 A to masters 4-5: acquire orders for A4, 10s, ballot 0.224013 to 0.224045, waiter wA1 -> granted
0.227 masters 4-5 to A: orders is free, and wA1 is first
0.227 A to masters 4-5: release orders of A4, waiter wA1 stays -> deleted
0.237 A to masters 1-3: acquire orders for A5, 10s, ballot 0.236017 to 0.236049, waiter wA1 -> held by C1 for
        9.964; place 1 in the queue
0.237 A to masters 4-5: acquire orders for A5, 10s, ballot 0.236017 to 0.236049, waiter wA1 -> granted
0.239 masters 4-5 to A: orders is free, and wA1 is first
0.239 A to masters 4-5: release orders of A5, waiter wA1 stays -> deleted
0.257 A to masters 1-3: acquire orders for A6, 10s, ballot 0.256021 to 0.256053, waiter wA1 -> held by C1 for
        9.944; place 1 in the queue
0.257 A to masters 4-5: acquire orders for A6, 10s, ballot 0.256021 to 0.256053, waiter wA1 -> granted
0.259 masters 4-5 to A: orders is free, and wA1 is first
0.259 A to masters 4-5: release orders of A6, waiter wA1 stays -> deleted
0.293 A to masters 1-3: acquire orders for A7, 10s, ballot 0.292025 to 0.292057, waiter wA1 -> held by C1 for
        9.908; place 1 in the queue
0.293 A to masters 4-5: acquire orders for A7, 10s, ballot 0.292025 to 0.292057, waiter wA1 -> granted
0.295 masters 4-5 to A: orders is free, and wA1 is first
0.295 A to masters 4-5: release orders of A7, waiter wA1 stays -> deleted
0.361 A to masters 1-3: acquire orders for A8, 10s, ballot 0.360029 to 0.360061, waiter wA1 -> held by C1 for
        9.840; place 1 in the queue
0.361 A to masters 4-5: acquire orders for A8, 10s, ballot 0.360029 to 0.360061, waiter wA1 -> granted
0.363 masters 4-5 to A: orders is free, and wA1 is first
0.363 A to masters 4-5: release orders of A8, waiter wA1 stays -> deleted

B locks orders
----
0.421 B to masters 1-3: acquire orders for B1, 10s, ballot 0.420000 to 0.420032 -> held by C1 for 9.780
0.421 masters 4-5 to A: orders is free, and wA1 is first
0.421 B to masters 4-5: acquire orders for B1, 10s, ballot 0.420000 to 0.420032 -> free, but another waiter is
        first for 0.943
0.425 B to masters 1-5: subscribe to its inbox -> done
0.427 B to masters 1-3: acquire orders for B2, 10s, ballot 0.426008 to 0.426040, waiter wB1 -> held by C1 for
        9.774; place 2 in the queue
0.427 masters 4-5 to A: orders is free, and wA1 is first
0.427 B to masters 4-5: acquire orders for B2, 10s, ballot 0.426008 to 0.426040, waiter wB1 -> free, but another
        waiter is first for 0.937; place 2 in the queue
0.429 B to masters 1-3: acquire orders for B3, 10s, ballot 0.428010 to 0.428042, waiter wB1 -> held by C1 for
        9.772; place 2 in the queue
0.429 masters 4-5 to A: orders is free, and wA1 is first
0.429 B to masters 4-5: acquire orders for B3, 10s, ballot 0.428010 to 0.428042, waiter wB1 -> free, but another
        waiter is first for 0.935; place 2 in the queue

wait 10ms
----

show queues
----
  masters 1-5: 2 waiting: wA1, wB1

# C's release cannot reach master 2. A needs a majority of five, and two masters wake it because the name is free.
master 2 stops
----

C unlocks orders
----
0.440 C cannot unlock orders; the call ends after 0.000: unlock "orders": no quorum of masters; 0 of 5 masters
        agreed, quorum is 3, and 2 did not have it (2 replies outstanding); master 2: read: master is down:
        connection reset
0.441 masters 1 3 to A: orders is free, and wA1 is first
0.441 C to masters 1 3: release orders of C1 -> deleted
0.443 A to masters 1 3-5: acquire orders for A9, 10s, ballot 0.442002 to 0.442034, waiter wA1 -> granted
0.444 A has orders until 10.340, token 0.442002

A unlocks orders
----
0.451 A to masters 1 3-5: release orders of A9, waiter wA1 leaves -> deleted
0.451 masters 1 3-5 to B: orders is free, and wB1 is first
0.452 A has unlocked orders
0.453 B to masters 1 3-5: acquire orders for B4, 10s, ballot 0.452002 to 0.452034, waiter wB1 -> granted
0.454 B has orders until 10.350, token 0.452002

who holds orders
----
at 0.460
  masters 1 3-5: B4 until 10.453
  master 2: C1 until 10.201
  C does not hold it
  A does not hold it
  B holds it until 10.350, on 4 of 5, token 0.452002

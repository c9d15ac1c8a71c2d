# H82. A waits, and has won a minority meanwhile, where the name is free.
# What could go wrong: A's roll-back takes A out of the queue there, so that the hint goes to others, and each waits for
# a quorum of hints that none gets.
# What must hold: a roll-back keeps the ticket. A waiter asks a little after the first hint, so one that is lost, with a
# master that is down, costs milliseconds.
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
0.217 A to masters 1-3: acquire orders for A2, 10s, ballot 0.216006 to 0.216038, waiter wA1 -> held by C1 for
        9.984; place 1 in the queue
0.217 A to masters 4-5: acquire orders for A2, 10s, ballot 0.216006 to 0.216038, waiter wA1 -> granted
0.219 masters 4-5 to A: orders is free, and wA1 is first
0.219 A to masters 4-5: release orders of A2, waiter wA1 stays -> deleted

B locks orders
----
0.221 B to masters 1-3: acquire orders for B1, 10s, ballot 0.220000 to 0.220032 -> held by C1 for 9.980
0.221 masters 4-5 to A: orders is free, and wA1 is first
0.221 B to masters 4-5: acquire orders for B1, 10s, ballot 0.220000 to 0.220032 -> free, but another waiter is
        first for 0.999
0.221 A to masters 1-3: acquire orders for A3, 10s, ballot 0.220006 to 0.220038, waiter wA1 -> held by C1 for
        9.980; place 1 in the queue
0.221 A to masters 4-5: acquire orders for A3, 10s, ballot 0.220006 to 0.220038, waiter wA1 -> granted
0.223 B to masters 4-5: release orders of B1 -> was not there
0.223 masters 4-5 to A: orders is free, and wA1 is first
0.223 A to masters 4-5: release orders of A3, waiter wA1 stays -> deleted
0.225 B to masters 1-5: subscribe to its inbox -> done
0.227 B to masters 1-3: acquire orders for B2, 10s, ballot 0.226006 to 0.226038, waiter wB1 -> held by C1 for
        9.974; place 2 in the queue
0.227 masters 4-5 to A: orders is free, and wA1 is first
0.227 B to masters 4-5: acquire orders for B2, 10s, ballot 0.226006 to 0.226038, waiter wB1 -> free, but another
        waiter is first for 0.997; place 2 in the queue
0.229 masters 4-5 to A: orders is free, and wA1 is first
0.229 B to masters 4-5: release orders of B2, waiter wB1 stays -> was not there
0.229 A to masters 1-3: acquire orders for A4, 10s, ballot 0.228010 to 0.228042, waiter wA1 -> held by C1 for
        9.972; place 1 in the queue
0.229 A to masters 4-5: acquire orders for A4, 10s, ballot 0.228010 to 0.228042, waiter wA1 -> granted

show queues
----
  masters 1-3: 2 waiting: wA1, wB1
  masters 4-5: 1 waiting: wB1

master 2 stops
----

wait 100ms
----
0.231 B to masters 1 3: acquire orders for B3, 10s, ballot 0.230006 to 0.230038, waiter wB1 -> held by C1 for
        9.970; place 2 in the queue
0.231 B to masters 4-5: acquire orders for B3, 10s, ballot 0.230006 to 0.230038, waiter wB1 -> held by A4 for
        9.998; place 1 in the queue
0.231 masters 4-5 to A: orders is free, and wA1 is first
0.231 A to masters 4-5: release orders of A4, waiter wA1 stays -> deleted
0.233 masters 4-5 to A: orders is free, and wA1 is first
0.233 B to masters 4-5: release orders of B3, waiter wB1 stays -> was not there
0.247 A to masters 1 3: acquire orders for A5, 10s, ballot 0.246010 to 0.246042, waiter wA1 -> held by C1 for
        9.954; place 1 in the queue
0.247 A to masters 4-5: acquire orders for A5, 10s, ballot 0.246010 to 0.246042, waiter wA1 -> granted
0.249 masters 4-5 to A: orders is free, and wA1 is first
0.249 A to masters 4-5: release orders of A5, waiter wA1 stays -> deleted
0.283 A to masters 1 3: acquire orders for A6, 10s, ballot 0.282014 to 0.282046, waiter wA1 -> held by C1 for
        9.918; place 1 in the queue
0.283 A to masters 4-5: acquire orders for A6, 10s, ballot 0.282014 to 0.282046, waiter wA1 -> granted
0.285 masters 4-5 to A: orders is free, and wA1 is first
0.285 A to masters 4-5: release orders of A6, waiter wA1 stays -> deleted

C unlocks orders
----
0.330 C cannot unlock orders, and is told after 0.000: unlock "orders": no quorum of masters; 0 of 5 masters said
        yes, 3 are needed, and 2 did not have it; master 2: connect: master is down: dial pipe: connection
        refused: the master is stopped
0.331 masters 1 3 to A: orders is free, and wA1 is first
0.331 C to masters 1 3: release orders of C1 -> deleted
0.333 A to masters 1 3-5: acquire orders for A7, 10s, ballot 0.332002 to 0.332034, waiter wA1 -> granted
0.334 A has orders until 10.230, token 0.332002

A unlocks orders
----
0.341 A to masters 1 3-5: release orders of A7, waiter wA1 leaves -> deleted
0.341 masters 1 3-5 to B: orders is free, and wB1 is first
0.342 A has unlocked orders
0.343 B to masters 1 3-5: acquire orders for B4, 10s, ballot 0.342002 to 0.342034, waiter wB1 -> granted
0.344 B has orders until 10.240, token 0.342002

who holds orders
----
at 0.350
  masters 1 3-5: B4 until 10.343
  master 2: C1 until 10.201
  C does not hold it
  A does not hold it
  B holds it until 10.240, on 4 of 5, token 0.342002

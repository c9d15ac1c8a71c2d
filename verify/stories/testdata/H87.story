# H87. B has the earliest ticket, and loses the connection to a majority.
# What could go wrong: B wins the minority that it reaches, rolls back, is woken by its own rollback, and tries again.
# No other client wins for as long as B's ticket counts.
# What must hold: a waiter that cannot reach a majority of voters leaves the queues, and tries without a ticket.
masters 5
----

program A B C
----

A locks orders
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

B locks orders
----
0.111 B to masters 1-5: acquire orders for B1, 10s, ballot 0.110000 to 0.110032 -> held by A1 for 9.990
0.115 B to masters 1-5: subscribe to its inbox -> done
0.117 B to masters 1-5: acquire orders for B2, 10s, ballot 0.116008 to 0.116040, waiter wB1 -> held by A1 for
        9.984; place 1 in the queue
0.119 B to masters 1-5: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> held by A1 for
        9.982; place 1 in the queue

C locks orders
----
0.121 C to masters 1-5: acquire orders for C1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 9.980
0.125 C to masters 1-5: subscribe to its inbox -> done
0.127 C to masters 1-5: acquire orders for C2, 10s, ballot 0.126008 to 0.126040, waiter wC1 -> held by A1 for
        9.974; place 2 in the queue
0.129 C to masters 1-5: acquire orders for C3, 10s, ballot 0.128010 to 0.128042, waiter wC1 -> held by A1 for
        9.972; place 2 in the queue

wait 200ms
----

show queues
----
  masters 1-5: 2 waiting: wB1, wC1

cut B from 3-5
----

wait 1s
----
1.105 A to masters 1-5: subscribe to its inbox -> done
1.121 B to masters 1-2: release orders, waiter wB1 leaves -> done
1.131 C to masters 1-2: acquire orders for C4, 10s, ballot 1.130012 to 1.130044, waiter wC1 -> held by A1 for
        8.970; place 1 in the queue
1.131 C to masters 3-5: acquire orders for C4, 10s, ballot 1.130012 to 1.130044, waiter wC1 -> held by A1 for
        8.970; place 2 in the queue

show queues
----
  masters 1-2: 1 waiting: wC1
  masters 3-5: 2 waiting: wB1, wC1

A unlocks orders
----
1.331 A to masters 1-5: release orders of A1 -> deleted
1.331 masters 1-5 to C: orders is free, and wC1 is first
1.332 A has unlocked orders
1.333 C to masters 1-5: acquire orders for C5, 10s, ballot 1.332002 to 1.332034, waiter wC1 -> granted
1.334 C has orders until 11.230, token 1.332002

who holds orders
----
at 1.340
  masters 1-5: C5 until 11.333
  A does not hold it
  B waits for it
  C holds it until 11.230, on 5 of 5, token 1.332002

# The connection is restored, and B gets its turn.
join B to 3-5
----

wait 3s
----
1.906 B to masters 3-5: subscribe to its inbox -> done
1.910 B to masters 1-3: acquire orders for B4, 10s, ballot 1.909649 to 1.909681 -> held by C5 for 9.423
1.912 B to masters 1-5: acquire orders for B5, 10s, ballot 1.911651 to 1.911683 -> held by C5 for 9.421
1.912 B to masters 2-3: release orders of B4 -> was not there
1.914 B to masters 1-5: acquire orders for B6, 10s, ballot 1.913653 to 1.913685, waiter wB1 -> held by C5 for
        9.419; place 1 in the queue
2.916 B to masters 1-5: acquire orders for B7, 10s, ballot 2.915655 to 2.915687, waiter wB1 -> held by C5 for
        8.417; place 1 in the queue
3.918 B to masters 1-5: acquire orders for B8, 10s, ballot 3.917657 to 3.917689, waiter wB1 -> held by C5 for
        7.415; place 1 in the queue

C unlocks orders
----
4.341 masters 1-5 to B: orders is free, and wB1 is first
4.341 C to masters 1-5: release orders of C5, waiter wC1 leaves -> deleted
4.342 C has unlocked orders
4.343 B to masters 1-5: acquire orders for B9, 10s, ballot 4.342002 to 4.342034, waiter wB1 -> granted
4.344 B has orders until 14.240, token 4.342002

wait 1s
----

# H65. Hundreds of waiters die, and stay in the queue as long as others arrive.
# What could go wrong: one release visits all of them, and the master answers no client meanwhile.
# What must hold: a waiter counts for 20 s after its last attempt. Expired waiters are dropped by time, at most 500 by
# one script. (A test on real servers allows 5 ms for a release with 100 000 of them in the queue.)
masters 3
----

program A B
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

crowd 600
----

B locks orders
----
0.121 B to masters 1-3: acquire orders for B1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 9.980
0.125 B to masters 1-3: subscribe to its inbox -> done
0.127 B to masters 1-3: acquire orders for B2, 10s, ballot 0.126008 to 0.126040, waiter wB1 -> held by A1 for
        9.974; place 601 in the queue
0.129 B to masters 1-3: acquire orders for B3, 10s, ballot 0.128010 to 0.128042, waiter wB1 -> held by A1 for
        9.972; place 601 in the queue

wait 19900ms
----
1.105 A to masters 1-3: subscribe to its inbox -> done
3.434 A to masters 1-3: extend orders for A1 by 10s -> done
5.131 B to masters 1-3: acquire orders for B4, 10s, ballot 5.130012 to 5.130044, waiter wB1 -> held by A1 for
        8.303; place 601 in the queue
6.767 A to masters 1-3: extend orders for A1 by 10s -> done
10.101 A to masters 1-3: extend orders for A1 by 10s -> done
10.133 B to masters 1-3: acquire orders for B5, 10s, ballot 10.132014 to 10.132046, waiter wB1 -> held by A1 for
        9.968; place 601 in the queue
13.434 A to masters 1-3: extend orders for A1 by 10s -> done
15.135 B to masters 1-3: acquire orders for B6, 10s, ballot 15.134016 to 15.134048, waiter wB1 -> held by A1 for
        8.299; place 601 in the queue
16.767 A to masters 1-3: extend orders for A1 by 10s -> done

show queues
----
  masters 1-3: 601 waiting: dead ones

wait 1s
----
20.101 A to masters 1-3: extend orders for A1 by 10s -> done
20.137 B to masters 1-3: acquire orders for B7, 10s, ballot 20.136018 to 20.136050, waiter wB1 -> held by A1 for
        9.964; place 101 in the queue

show queues
----
  masters 1-3: 101 waiting: dead ones

wait 1s
----

show queues
----
  masters 1-3: 101 waiting: dead ones

A unlocks orders
----
22.031 A to masters 1-3: release orders of A1 -> deleted
22.031 masters 1-3 to B: orders is free, and wB1 is first
22.032 A has unlocked orders
22.033 B to masters 1-3: acquire orders for B8, 10s, ballot 22.032002 to 22.032034, waiter wB1 -> granted
22.034 B has orders until 31.930, token 22.032002

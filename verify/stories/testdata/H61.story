# H61. A's machine is frozen for less than the validity of its lock.
# What could go wrong: A's timer was frozen, too. It reports the loss too late by that time, when B holds the lock.
# What must hold: the remaining validity is computed from both clocks of the machine at every check. A detects the loss
# in time, although a virtual machine that its host has stopped sees the time only by the wall clock.
masters 5
----

program A B
----

A locks orders extension=off
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

wait 2s
----
1.105 A to masters 1-5: subscribe to its inbox -> done

who holds orders
----
at 2.110
  masters 1-5: A1 until 10.101
  A holds it until 9.998, on 5 of 5, token 0.100000
  B does not hold it

freeze A 4s virtual=yes
----

who holds orders
----
at 6.110
  masters 1-5: A1 until 10.101
  A holds it until 9.998, on 5 of 5, token 0.100000
  B does not hold it

# B tries until it has the lock. A must detect the loss before.
wait 3500ms
----

B locks orders
----
9.611 B to masters 1-5: acquire orders for B1, 10s, ballot 9.610000 to 9.610032 -> held by A1 for 0.490
9.615 B to masters 1-5: subscribe to its inbox -> done
9.617 B to masters 1-5: acquire orders for B2, 10s, ballot 9.616008 to 9.616040, waiter wB1 -> held by A1 for
        0.484; place 1 in the queue
9.619 B to masters 1-5: acquire orders for B3, 10s, ballot 9.618010 to 9.618042, waiter wB1 -> held by A1 for
        0.482; place 1 in the queue

wait 500ms
----
9.998 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time
10.104 B to masters 1-5: acquire orders for B4, 10s, ballot 10.103012 to 10.103044, waiter wB1 -> granted
10.105 B has orders until 20.001, token 10.103012

who holds orders
----
at 10.120
  masters 1-5: B4 until 20.104
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B holds it until 20.001, on 5 of 5, token 10.103012

B unlocks orders
----
10.121 B to masters 1-5: release orders of B4, waiter wB1 leaves -> deleted
10.122 B has unlocked orders

# The wall clock jumps forward by some of the validity. It may be right, so the jump counts as elapsed time.
A locks orders extension=off
----
10.131 A to masters 1-5: acquire orders for A2, 10s, ballot 10.130000 to 10.130032, waiter wA1 -> granted
10.132 A has orders until 20.028, token 10.130000

set wall clock of A forward 4s
----

who holds orders
----
at 10.140
  masters 1-5: A2 until 20.131
  A holds it until 16.028, on 5 of 5, token 10.130000
  B does not hold it

wait 6s
----
16.028 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

# H61. A's machine stands still for less than the validity of its lock.
# What could go wrong: A's timer has stood still, too. It tells the loss by so much too late, when B holds the lock.
# What must hold: what remains is computed from both clocks of the machine at every look. A is told in time, though a
# virtual machine that its host has stopped knows of it by the wall clock alone.
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

# B asks until it has the lock. A must be told before.
B locks orders
----
6.111 B to masters 1-5: acquire orders for B1, 10s, ballot 6.110000 to 6.110032 -> held by A1 for 3.990
6.113 B to masters 4-5: release orders of B1 -> was not there
6.115 B to masters 1-5: subscribe to its inbox -> done
6.117 B to masters 1-5: acquire orders for B2, 10s, ballot 6.116006 to 6.116038, waiter wB1 -> held by A1 for
        3.984; place 1 in the queue
6.119 B to masters 4-5: release orders of B2, waiter wB1 stays -> was not there

wait 4s
----
6.121 B to masters 1-5: acquire orders for B3, 10s, ballot 6.120006 to 6.120038, waiter wB1 -> held by A1 for
        3.980; place 1 in the queue
6.123 B to masters 4-5: release orders of B3, waiter wB1 stays -> was not there
7.123 B to masters 1-5: acquire orders for B4, 10s, ballot 7.122008 to 7.122040, waiter wB1 -> held by A1 for
        2.978; place 1 in the queue
7.125 B to masters 4-5: release orders of B4, waiter wB1 stays -> was not there
8.125 B to masters 1-5: acquire orders for B5, 10s, ballot 8.124010 to 8.124042, waiter wB1 -> held by A1 for
        1.976; place 1 in the queue
8.127 B to masters 4-5: release orders of B5, waiter wB1 stays -> was not there
9.127 B to masters 1-5: acquire orders for B6, 10s, ballot 9.126012 to 9.126044, waiter wB1 -> held by A1 for
        0.974; place 1 in the queue
9.129 B to masters 4-5: release orders of B6, waiter wB1 stays -> was not there
9.998 A is told that its lock of orders has ended: the lock was lost
10.104 B to masters 1-5: acquire orders for B7, 10s, ballot 10.103014 to 10.103046, waiter wB1 -> granted
10.105 B has orders until 20.001, token 10.103014

who holds orders
----
at 10.120
  masters 1-5: B7 until 20.104
  A knows that its lock has ended: the lock was lost
  B holds it until 20.001, on 5 of 5, token 10.103014

# The wall clock jumps forward by a part of the validity. Nobody knows which clock is right, so it counts.
B unlocks orders
----
10.121 B to masters 1-5: release orders of B7, waiter wB1 leaves -> deleted
10.122 B has unlocked orders

A locks orders extension=off
----
10.131 A to masters 1-5: acquire orders for A2, 10s, ballot 10.130000 to 10.130032 -> granted
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
16.028 A is told that its lock of orders has ended: the lock was lost

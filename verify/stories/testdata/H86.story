# H86. Twenty waiters have died unnoticed: no client receives their wake-ups, and they still count.
# What could go wrong: a release visits all of them in one script, and the master answers no client meanwhile. Or it
# visits none, and the live waiters wait until the dead ones no longer count.
# What must hold: one script wakes at most eight, and answers "try again at once" to other attempts. Each attempt
# continues.
masters 3
----

program A B
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

crowd 20
----

show queues
----
  masters 1-3: 20 waiting: dead ones

B locks orders
----
0.121 B to masters 1-3: acquire orders for B1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 9.980
0.125 B to masters 1-3: subscribe to its inbox -> done
0.127 B to masters 1-3: acquire orders for B2, 10s, ballot 0.126008 to 0.126040, waiter wB1 -> held by A1 for
        9.974; place 21 in the queue
0.129 B to masters 1-3: acquire orders for B3, 10s, ballot 0.128010 to 0.128042, waiter wB1 -> held by A1 for
        9.972; place 21 in the queue

A unlocks orders
----
0.131 A to masters 1-3: release orders of A1 -> deleted
0.132 A has unlocked orders

wait 1s
----

show queues
----
  masters 1-3: 13 waiting: dead ones

who holds orders
----
at 1.140
  masters 1-3: free
  A does not hold it
  B waits for it

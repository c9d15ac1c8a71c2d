# H126. A job that takes a millisecond runs at a fixed time on one host of several, and their clocks differ by half a
# second.
# What could go wrong: the second host acquires the lock after the first has unlocked it, and runs the job again.
# What must hold: a lock with a minimum hold keeps its name locked for that time, however the lock ends.
masters 5
----

program A B
----

A locks orders minimum=20s
----
0.101 A to masters 1-5: acquire orders for A1, 20.202s, ballot 0.100000 -> granted
0.102 A has orders until 20.097, token 0.100000

A unlocks orders
----
0.111 A to masters 1-5: release orders of A1, in 20.195s -> kept
0.112 A has unlocked orders

# The masters keep the name, with the depth 0. No client is needed for that.
B tries orders
----
0.121 B to masters 1-5: acquire orders for B1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 20.182
0.122 B cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 5 masters agreed,
        quorum is 3; held by "A" since 00:00:00; expires in 20.183s unless extended

who holds orders
----
at 0.130
  masters 1-5: A1 until 20.303
  A does not hold it
  B does not hold it

A dies
----

wait 19s
----

B tries orders
----
19.141 B to masters 1-5: acquire orders for B2, 10s, ballot 19.140000 to 19.140032 -> held by A1 for 1.162
19.142 B cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 5 masters agreed,
        quorum is 3; held by "A" since 00:00:00; expires in 1.163s unless extended

wait 2s
----

# The same if the client dies while it holds the lock.
B locks orders minimum=20s
----
21.151 B to masters 1-5: acquire orders for B3, 20.202s, ballot 21.150000 -> granted
21.152 B has orders until 41.147, token 21.150000

B dies
----

program C
----

wait 19s
----

C tries orders
----
40.271 C to masters 1-5: acquire orders for C1, 10s, ballot 40.270000 to 40.270032 -> held by B3 for 1.082
40.272 C cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 5 masters agreed,
        quorum is 3; held by "B" since 00:00:21; expires in 1.083s unless extended

wait 2s
----

C tries orders
----
42.281 C to masters 1-5: acquire orders for C2, 10s, ballot 42.280000 to 42.280032 -> granted
42.282 C has orders until 52.178, token 42.280000

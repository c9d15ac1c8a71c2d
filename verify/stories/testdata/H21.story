# H21. An extension fails.
# What could go wrong: the library takes the failure for the loss of the lock and releases it, so a short disturbance
# costs a lock that is valid for seconds.
# What must hold: a failed extension changes nothing. The lock stays valid to its earlier end, and is extended later.
masters 3
----

program A B
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

masters 2-3 hang
----

A extends orders within=100ms
----
0.111 A to master 1: extend orders for A1 by 10s -> done

wait 200ms
----
0.210 A cannot extend orders; the call ends after 0.100: extend "orders": context deadline exceeded; 1 of 3
        masters agreed, quorum is 2; master 2, master 3: extend: it has not answered for 100ms

who holds orders
----
at 0.320
  master 1: A1 until 10.111
  masters 2-3: A1 until 10.101
  A holds it until 9.998, on 3 of 3, token 0.100000
  B does not hold it

masters 2-3 resume
----
0.320 A to masters 2-3: extend orders for A1 by 10s -> done

B tries orders
----
0.321 B to master 1: acquire orders for B1, 10s, ballot 0.320000 to 0.320032 -> held by A1 for 9.790
0.321 B to masters 2-3: acquire orders for B1, 10s, ballot 0.320000 to 0.320032 -> held by A1 for 9.999
0.322 B cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 3 masters agreed,
        quorum is 2; held by "A" since 00:00:00; expires in 9.791s unless extended

wait 4s
----
1.105 A to masters 1-3: subscribe to its inbox -> done
3.444 A to masters 1-3: extend orders for A1 by 10s -> done

who holds orders
----
at 4.330
  masters 1-3: A1 until 13.444
  A holds it until 13.341, on 3 of 3, token 0.100000
  B does not hold it

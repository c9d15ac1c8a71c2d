# H64. Close is called with a context that has ended, or ends while an Unlock waits for masters that hang.
# What could go wrong: nothing is released, and the locks are extended without a holder.
# What must hold: Close ends each lock and sends its release first. Then it waits, at most until its context ends.
masters 3
----

program A B C
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

A closes cancelled
----
0.110 A cannot close; the call ends after 0.000: close "redlock": context canceled
0.110 A learns that its lock of orders has ended: the locker is closed
0.111 A to masters 1-3: release orders of A1 -> deleted

who holds orders
----
at 0.120
  masters 1-3: free
  A knows that its lock has ended: the locker is closed
  B does not hold it
  C does not hold it

B locks orders
----
0.121 B to masters 1-3: acquire orders for B1, 10s, ballot 0.120000 to 0.120032 -> granted
0.122 B has orders until 10.018, token 0.120000

B locks stock
----
0.131 B to masters 1-3: acquire stock for B2, 10s, ballot 0.130000 to 0.130032 -> granted
0.132 B has stock until 10.028, token 0.130000

masters 1-3 hang
----

B unlocks stock
----

B closes within=100ms
----
0.150 B learns that its lock of orders has ended: the locker is closed

wait 200ms
----
0.250 B cannot close; the call ends after 0.100: close "redlock": context deadline exceeded

masters 1-3 resume
----
0.360 B to masters 1-3: release orders of B1 -> deleted
0.360 B to masters 1-3: release stock of B2 -> deleted

wait 2s
----
0.361 B has unlocked stock

who holds orders
----
at 2.360
  masters 1-3: free
  A knows that its lock has ended: the locker is closed
  B knows that its lock has ended: the locker is closed
  C does not hold it

who holds stock
----
at 2.360
  masters 1-3: free
  A does not hold it
  B does not hold it
  C does not hold it

C tries orders
----
2.361 C to masters 1-3: acquire orders for C1, 10s, ballot 2.360000 to 2.360032 -> granted
2.362 C has orders until 12.258, token 2.360000

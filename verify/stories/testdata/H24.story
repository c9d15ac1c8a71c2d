# H24. The holder is cut off from all masters, so its lock expires.
# What could go wrong: the holder detects that only when its next message fails, when another client already has the
# lock.
# What must hold: the holder's own timer reports the loss at the end of the validity, before any master deletes the key.
masters 5
----

program A B
----

A locks orders ttl=5s
----
0.101 A to masters 1-5: acquire orders for A1, 5s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 5.048, token 0.100000

cut A from 1-5
----

wait 4500ms
----

B locks orders
----
4.611 B to masters 1-5: acquire orders for B1, 10s, ballot 4.610000 to 4.610032 -> held by A1 for 0.490
4.615 B to masters 1-5: subscribe to its inbox -> done
4.617 B to masters 1-5: acquire orders for B2, 10s, ballot 4.616008 to 4.616040, waiter wB1 -> held by A1 for
        0.484; place 1 in the queue
4.619 B to masters 1-5: acquire orders for B3, 10s, ballot 4.618010 to 4.618042, waiter wB1 -> held by A1 for
        0.482; place 1 in the queue

# The validity is the TTL minus the time since before the acquire was sent, minus the drift of 1 % and 2 ms.
wait 400ms
----

who holds orders
----
at 5.020
  masters 1-5: A1 until 5.101
  A holds it until 5.048, on 0 of 5, token 0.100000
  B waits for it

wait 100ms
----
5.048 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time
5.104 B to masters 1-5: acquire orders for B4, 10s, ballot 5.103012 to 5.103044, waiter wB1 -> granted
5.105 B has orders until 15.001, token 5.103012

who holds orders
----
at 5.120
  masters 1-5: B4 until 15.104
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B holds it until 15.001, on 5 of 5, token 5.103012

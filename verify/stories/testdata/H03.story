# H03. Masters grant the lock, and their answers are lost.
# What could go wrong: the attempt fails, and is undone only on masters whose grant was received. The others keep the
# name locked for a whole TTL.
# What must hold: a failed attempt is undone on each master that may have granted it. A release that cannot be delivered
# stays pending, and is the first message on the next connection.
masters 5
----

program A B
----

hold answers from 1-5 to A
----

A tries orders within=400ms
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted

who holds orders
----
at 0.110
  masters 1-5: A1 until 10.101
  A waits for it
  B does not hold it

# The masters have granted, and A has received nothing. A gives up, but its release does not arrive either. A connection
# is closed half a second after a message without an answer.
hold messages from A to 1-5
----

wait 600ms
----
0.500 A cannot lock orders; the call ends after 0.400: lock "orders": context deadline exceeded; 0 of 5 masters
        agreed, quorum is 3; master 1, master 2, master 3, master 4, master 5: lock: it has not answered for
        400ms

# New connections work. The messages on the old ones are lost.
let everything from A to 1-5 pass
----

wait 2s
----
1.646 A to masters 1-5: release orders of A1, fence 0.100032 -> deleted

who holds orders
----
at 2.710
  masters 1-5: free
  A does not hold it
  B does not hold it

B tries orders
----
2.711 B to masters 1-5: acquire orders for B1, 10s, ballot 2.710000 to 2.710032 -> granted
2.712 B has orders until 12.608, token 2.710000

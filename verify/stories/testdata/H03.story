# H03. Masters grant, and their answers are lost.
# What could go wrong: the attempt fails, and is undone only where "granted" was heard. The others keep the name locked
# for a whole TTL.
# What must hold: a failed attempt is undone on each master that may have granted. A release that cannot be delivered is
# owed, and is the first message on the next connection.
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

# The masters have granted, and A has heard nothing. It gives up, but its release does not get through either. Half a
# second after a message without an answer a connection is given up.
hold messages from A to 1-5
----

wait 600ms
----
0.500 A cannot lock orders; the call ends after 0.400: lock "orders": context deadline exceeded; 0 of 5 masters
        agreed, quorum is 3; master 1, master 2, master 3, master 4, master 5: lock: it has not answered for
        400ms

# New connections work. What is held up on the old ones is lost for good.
let everything from A to 1-5 pass
----

wait 2s
----
1.646 A to masters 1-5: release orders of A1, fence 0.100032 -> deleted

who holds orders
----
at 2.710
  masters 1-5: nobody
  A does not hold it
  B does not hold it

B tries orders
----
2.711 B to masters 1-5: acquire orders for B1, 10s, ballot 2.710000 to 2.710032 -> granted
2.712 B has orders until 12.608, token 2.710000

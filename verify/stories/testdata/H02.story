# H02. An acquire is delayed in the network, and arrives after the release that was sent to undo it.
# What could go wrong: the late acquire locks the name without a holder, for a whole TTL.
# What must hold: the late acquire is refused. A release that finds nothing raises the fence to the last ballot of the
# acquire, and only larger ballots are accepted. (In H03 the acquire arrives first, and the release deletes its lock.)
masters 3
----

program A B
----

# The attempt fails, because the acquire does not reach two masters. A undoes it on the masters that granted it, and
# keeps a pending release for the others.
hold messages from A to 2-3
----

A tries orders
----
0.101 A to master 1: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted

wait 1s
----
0.600 A cannot lock orders; the call ends after 0.500: lock "orders": no quorum of masters; 1 of 3 masters
        agreed, quorum is 2; master 2, master 3: acquire: master is down: no reply within 500ms (outcome unknown)
0.601 A to master 1: release orders of A1 -> deleted

# New connections work again. The pending releases are sent first on them, and find nothing.
let messages from A to 2-3 pass
----

wait 2s
----
1.646 A to masters 2-3: release orders of A1, fence 0.100032 -> was not there

# Now the acquires arrive on the old connections.
deliver messages from A to 2-3
----
3.111 A to masters 2-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> stale, the fence is 0.100032

who holds orders
----
at 3.120
  masters 1-3: free
  A does not hold it
  B does not hold it

B tries orders
----
3.121 B to masters 1-3: acquire orders for B1, 10s, ballot 3.120000 to 3.120032 -> granted
3.122 B has orders until 13.018, token 3.120000

# H20. A lock is lost on the masters, and its holder does not know. Then it is extended.
# What could go wrong: the extension creates the lock again, although another client may have held it meanwhile.
# What must hold: an extension creates nothing. If a minority has lost the lock, it is restored there, after a majority
# has confirmed in the same round that it still has the lock.
masters 5
----

program A B
----

A locks orders
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

# Two masters lose the key. The next extension detects that, and repairs them.
masters 4-5 lose orders
----

A extends orders
----
0.111 A to masters 1-3: extend orders for A1 by 10s -> done
0.111 A to masters 4-5: extend orders for A1 by 10s -> missing
0.112 A has extended orders
0.113 A to masters 4-5: repair orders for A1, 10s, ballot 0.112002, token 0.100000 -> granted

who holds orders
----
at 0.120
  masters 1-3: A1 until 10.111
  masters 4-5: A1 until 10.113
  A holds it until 10.008, on 5 of 5, token 0.100000
  B does not hold it

# Three masters lose it, so B can win. A detects the loss with its next extension, which creates nothing.
masters 1-3 lose orders
----

who holds orders
----
at 0.120
  masters 1-3: free
  masters 4-5: A1 until 10.113
  A holds it until 10.008, on 5 of 5, token 0.100000
  B does not hold it

A extends orders
----
0.121 A to masters 1-3: extend orders for A1 by 10s -> missing
0.121 A to masters 4-5: extend orders for A1 by 10s -> done
0.122 A cannot extend orders; the call ends after 0.002: extend "orders": the lock was lost: too few masters
        still have it; 0 of 5 masters agreed, quorum is 3, and 3 did not have it
0.122 A learns that its lock of orders has ended: the lock was lost: too few masters still have it

B tries orders
----
0.131 B to masters 1-3: acquire orders for B1, 10s, ballot 0.130000 to 0.130032 -> granted
0.131 B to masters 4-5: acquire orders for B1, 10s, ballot 0.130000 to 0.130032 -> held by A1 for 9.990
0.132 B has orders until 10.028, token 0.130000

who holds orders
----
at 0.140
  masters 1-3: B1 until 10.131
  masters 4-5: A1 until 10.121
  A knows that its lock has ended: the lock was lost: too few masters still have it
  B holds it until 10.028, on 3 of 5, token 0.130000

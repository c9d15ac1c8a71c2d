# H59. One master has a fence close to the largest number.
# What could go wrong: each client proposes a ballot above it, and every later token is close to the largest number.
# What must hold: one master does not raise the tokens. It refuses, and the others grant.
masters 5
----

program A
----

master 2 has the fence 9007199254740990
----

A locks orders
----
0.101 A to masters 1 3-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.101 A to master 2: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> stale, the fence is
        9007199254740990
0.102 A has orders until 9.998, token 0.100000

A unlocks orders
----
0.111 A to masters 1 3-5: release orders of A1 -> deleted
0.111 A to master 2: release orders of A1 -> was not there
0.112 A has unlocked orders

wait 1s
----

A locks orders
----
1.121 A to masters 1 3-5: acquire orders for A2, 10s, ballot 1.120000 to 1.120032 -> granted
1.121 A to master 2: acquire orders for A2, 10s, ballot 1.120000 to 1.120032 -> stale, the fence is
        9007199254740990
1.122 A has orders until 11.018, token 1.120000

who holds orders
----
at 1.130
  masters 1 3-5: A2 until 11.121
  master 2: free
  A holds it until 11.018, on 4 of 5, token 1.120000

# H68. Two clients are given the same label, such as the name of their host.
# What could go wrong: the masters take them for one owner, and both hold the lock.
# What must hold: the id of an owner is always random. The label is only shown to people, in errors for example.
masters 3
----

program A label=web-1
----

program B label=web-1
----

A locks orders
----
0.201 A to masters 1-3: acquire orders for A1, 10s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 10.098, token 0.200000

B tries orders
----
0.211 B to masters 1-3: acquire orders for B1, 10s, ballot 0.210000 to 0.210032 -> held by A1 for 9.990
0.212 B cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 3 masters agreed,
        quorum is 2; held by "web-1" since 00:00:00; expires in 9.991s unless extended

who holds orders
----
at 0.220
  masters 1-3: A1 until 10.201
  A holds it until 10.098, on 3 of 3, token 0.200000
  B does not hold it

# H55. The masters forget a name.
# What could go wrong: tokens begin again from the start, and the resource takes the write of an old holder for that of
# a new one. Or the keys that remember tokens stay forever.
# What must hold: tokens grow, because they are the masters' time. The fences are kept for a minute.
masters 3
----

program A
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

A locks orders again
----
0.111 A to masters 1-3: extend orders for A1 by 10s, depth 2 -> done
0.112 A has orders until 10.008, token 0.100000

A unlocks orders
----
0.121 A to masters 1-3: keep orders for A1, depth 1 -> done
0.122 A has unlocked orders

A unlocks orders
----
0.131 A to masters 1-3: release orders of A1 -> deleted
0.132 A has unlocked orders

show masters
----
  masters 1-3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s; fence of orders 0.100032

wait 76s
----

show masters
----
  masters 1-3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s

A locks orders
----
76.141 A to masters 1-3: acquire orders for A2, 10s, ballot 76.140000 to 76.140032 -> granted
76.142 A has orders until 86.038, token 76.140000

A unlocks orders
----
76.151 A to masters 1-3: release orders of A2 -> deleted
76.152 A has unlocked orders

masters 1-3 lose all keys
----

A admits
----
76.163 A to masters 1-3: begin a quarantine -> done: in quarantine since 76.163003, one of 3, longest TTL 30s,
        quarantine 30s
76.169 A to masters 1-3: admit at once -> done: admitted since 76.169009, one of 3, longest TTL 30s, quarantine
        30s

A locks orders
----
76.170 A has admitted all masters
76.171 A to masters 1-2: acquire orders for A3, 10s, ballot 76.170010 to 76.170042 -> granted
76.172 A has orders until 86.068, token 76.170010
76.173 A to masters 1-3: subscribe to its inbox -> done
76.173 A to masters 1-2: extend orders for A3 by 10s -> done
76.173 A to master 3: extend orders for A3 by 10s -> missing
76.175 A to master 3: repair orders for A3, 10s, ballot 76.174014, token 76.170010 -> granted

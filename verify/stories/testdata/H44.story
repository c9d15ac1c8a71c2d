# H44. A policy of retries is given to all calls of a client.
# What could go wrong: it keeps its state from one call to the next, so that later calls give up at once.
# What must hold: each call begins with a new state. Here each tries three times, 10 ms apart.
masters 3
----

program A
----

program B tries=3
----

A locks orders
----
0.201 A to masters 1-3: acquire orders for A1, 10s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 10.098, token 0.200000

B locks orders
----
0.211 B to masters 1-3: acquire orders for B1, 10s, ballot 0.210000 to 0.210032 -> held by A1 for 9.990

wait 100ms
----
0.223 B to masters 1-3: acquire orders for B2, 10s, ballot 0.222002 to 0.222034 -> held by A1 for 9.978
0.235 B to masters 1-3: acquire orders for B3, 10s, ballot 0.234004 to 0.234036 -> held by A1 for 9.966
0.236 B cannot lock orders; the call ends after 0.026: lock "orders": held by another; 0 of 3 masters agreed,
        quorum is 2; held by "A" since 00:00:00; expires in 9.967s unless extended

B locks orders
----
0.321 B to masters 1-3: acquire orders for B4, 10s, ballot 0.320000 to 0.320032 -> held by A1 for 9.880

wait 100ms
----
0.333 B to masters 1-3: acquire orders for B5, 10s, ballot 0.332002 to 0.332034 -> held by A1 for 9.868
0.345 B to masters 1-3: acquire orders for B6, 10s, ballot 0.344004 to 0.344036 -> held by A1 for 9.856
0.346 B cannot lock orders; the call ends after 0.026: lock "orders": held by another; 0 of 3 masters agreed,
        quorum is 2; held by "A" since 00:00:00; expires in 9.857s unless extended

# H67. A function of the caller hangs: a callback of a trace, or a policy of retries.
# What could go wrong: Close waits for it forever.
# What must hold: Close returns when its context ends.
masters 3
----

program A trace=hangs
----

program B backoff=hangs
----

A locks orders extension=off ttl=1s
----
0.201 A to masters 1-3: acquire orders for A1, 1s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 1.188, token 0.200000

B locks orders
----
0.211 B to masters 1-3: acquire orders for B1, 10s, ballot 0.210000 to 0.210032 -> held by A1 for 0.990

wait 1s
----
1.188 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

A closes within=100ms
----

wait 200ms
----
1.320 A cannot close; the call ends after 0.100: close "redlock": context deadline exceeded

B closes within=100ms
----

wait 200ms
----
1.530 B cannot close; the call ends after 0.100: close "redlock": context deadline exceeded

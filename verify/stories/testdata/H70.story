# H70. A client requests a TTL that is longer than its deployment allows.
# What could go wrong: the masters refuse it forever, and the call waits forever.
# What must hold: the call ends at once, with the limit and the command that changes it.
masters 5 guard=30s
----

program A guard=2m ttl=1m
----

A locks orders
----
0.100 A cannot lock orders; the call ends after 0.000: lock "orders": the TTL is above the longest that the
        deployment allows; 0 of 5 masters agreed, quorum is 3; master 1, master 2, master 3, master 4, master 5:
        lock: the TTL is above the longest that the deployment allows: TTL 1m0s, longest TTL 30s; raise it on the
        masters first: redlock guard --set 1m0s, with the URLs of all

A raises guard=2m
----
0.113 A to master 1: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 30s, quarantine
        2m0s
0.115 A to master 2: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 30s, quarantine
        2m0s
0.117 A to master 3: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 30s, quarantine
        2m0s
0.119 A to master 4: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 30s, quarantine
        2m0s

wait 20ms
----
0.121 A to master 5: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 30s, quarantine
        2m0s
0.125 A to master 1: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 2m0s, quarantine
        2m0s
0.127 A to master 2: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 2m0s, quarantine
        2m0s
0.129 A to master 3: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 2m0s, quarantine
        2m0s
0.131 A to master 4: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 2m0s, quarantine
        2m0s
0.133 A to master 5: raise the max TTL -> done: admitted since 0.000000, one of 5, longest TTL 2m0s, quarantine
        2m0s
0.134 A has raised the max TTL to 2m

A locks orders
----
0.141 A to masters 1-5: acquire orders for A1, 1m0s, ballot 0.140000 to 0.140032 -> granted
0.142 A has orders until 59.538, token 0.140000

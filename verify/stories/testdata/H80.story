# H80. The max TTL is raised from 30 s to 5 m while one master is down, so the command cannot finish.
# What could go wrong: some masters accept locks of 5 m. The records of a master that loses its data are read from the
# others, which have 30 s, and it votes too early.
# What must hold: first the quarantine is raised on all masters, and only when all have it, the max TTL. An interrupted
# command leaves quarantines that are too long, never locks that are too long.
masters 3
----

program A guard=5m
----

master 3 stops
----

A raises guard=5m
----
0.102 A cannot raise the max TTL; the call ends after 0.002: guard "redlock": no quorum of masters; 2 of 3
        masters agreed, quorum is 3; master 3: read: master is down: connection reset

show masters
----
  masters 1-3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s

A tries orders ttl=1m
----
0.110 A cannot lock orders; the call ends after 0.000: lock "orders": the TTL is above the longest that the
        deployment allows; 0 of 3 masters agreed, quorum is 2; master 1, master 2: lock: the TTL is above the
        longest that the deployment allows: TTL 1m0s, longest TTL 30s; raise it on the masters first: redlock
        guard --set 1m0s, with the URLs of all; master 3: read: master is down: connection reset

master 3 restarts empty
----

wait 40s
----
0.150 A to master 3: begin a quarantine -> done: in quarantine since 0.150479, one of 3, longest TTL 30s,
        quarantine 5m0s

show A
----
  masters 1-2: voting
  master 3: quarantine for another 260.030

# When all masters are up, it succeeds.
A raises guard=5m
----
40.123 A to master 1: raise the max TTL -> done: admitted since 0.000000, one of 3, longest TTL 30s, quarantine
        5m0s
40.125 A to master 2: raise the max TTL -> done: admitted since 0.000000, one of 3, longest TTL 30s, quarantine
        5m0s
40.129 A to master 1: raise the max TTL -> done: admitted since 0.000000, one of 3, longest TTL 5m0s, quarantine
        5m0s

wait 10ms
----
40.131 A to master 2: raise the max TTL -> done: admitted since 0.000000, one of 3, longest TTL 5m0s, quarantine
        5m0s
40.133 A to master 3: raise the max TTL -> done: in quarantine since 0.150479, one of 3, longest TTL 5m0s,
        quarantine 5m0s
40.134 A has raised the max TTL to 5m

show masters
----
  masters 1-2: admitted since 0.000000, one of 3, longest TTL 5m0s, quarantine 5m0s
  master 3: in quarantine since 0.150479, one of 3, longest TTL 5m0s, quarantine 5m0s

A tries orders ttl=1m
----
40.141 A to masters 1-2: acquire orders for A1, 1m0s, ballot 40.140000 to 40.140032 -> granted
40.142 A has orders until 99.538, token 40.140000

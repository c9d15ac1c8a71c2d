# H81. A client that knows a max TTL of 30 s begins a quarantine, and another client knows 5 m.
# What could go wrong: the first client ends the quarantine, and writes its own smaller number.
# What must hold: a quarantine ends when the largest length that any client knows has passed since its start. Each
# record that is written has the largest numbers that were read.
masters 3
----

program A
----

master 1 restarts empty
----

wait 25s
----
0.120 A to master 1: begin a quarantine -> done: in quarantine since 0.120838, one of 3, longest TTL 30s,
        quarantine 30s

program B guard=5m
----
25.107 B to master 1: settle the max TTL -> done: in quarantine since 0.120838, one of 3, longest TTL 30s,
        quarantine 5m0s

wait 10s
----

show masters
----
  master 1: in quarantine since 0.120838, one of 3, longest TTL 30s, quarantine 5m0s
  masters 2-3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s

wait 4m
----

show A
----
  master 1: quarantine for another 24.920
  masters 2-3: voting

wait 30s
----
300.121 B to master 1: end the quarantine -> done: admitted since 300.121839, one of 3, longest TTL 30s,
        quarantine 5m0s
300.122 A to master 1: end the quarantine -> not done, the record has changed: admitted since 300.121839, one of
        3, longest TTL 30s, quarantine 5m0s

show masters
----
  master 1: admitted since 300.121839, one of 3, longest TTL 30s, quarantine 5m0s
  masters 2-3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s

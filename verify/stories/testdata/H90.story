# H90. The masters restart with their data, one after the other, and again, under one lock.
# What could go wrong: each restart counts as a master that has lost the lock, so after the third the lock ends.
# What must hold: a master counts by its identity since it last granted, confirmed or was repaired.
masters 3
----

program A
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

master 1 restarts with its data
----

wait 4s
----
0.128 A to masters 1-3: extend orders for A1 by 10s -> done
0.130 A to master 1: begin a quarantine -> done: in quarantine since 0.130838, one of 3, longest TTL 30s,
        quarantine 30s
0.130 A to masters 1-3: extend orders for A1 by 10s -> done
1.105 A to masters 1-3: subscribe to its inbox -> done
3.464 A to masters 1-3: extend orders for A1 by 10s -> done

master 2 restarts with its data
----

wait 4s
----
4.113 A to master 2: subscribe to its inbox -> done
4.115 A to masters 1-3: extend orders for A1 by 10s -> done
4.117 A to masters 1-3: extend orders for A1 by 10s -> done
4.117 A to master 2: begin a quarantine -> done: in quarantine since 4.117019, one of 3, longest TTL 30s,
        quarantine 30s
7.450 A to masters 1-3: extend orders for A1 by 10s -> done

master 3 restarts with its data
----

wait 4s
----
8.113 A to master 3: subscribe to its inbox -> done
8.115 A to masters 1-3: extend orders for A1 by 10s -> done
8.117 A to masters 1-3: extend orders for A1 by 10s -> done
8.117 A to master 3: begin a quarantine -> done: in quarantine since 8.117019, one of 3, longest TTL 30s,
        quarantine 30s
11.450 A to masters 1-3: extend orders for A1 by 10s -> done

master 1 restarts with its data
----

wait 4s
----
12.113 A to master 1: subscribe to its inbox -> done
12.115 A to masters 1-3: extend orders for A1 by 10s -> done
12.117 A to master 1: begin a quarantine -> done: in quarantine since 12.117019, one of 3, longest TTL 30s,
        quarantine 30s
12.117 A to masters 1-3: extend orders for A1 by 10s -> done
15.450 A to masters 1-3: extend orders for A1 by 10s -> done

who holds orders
----
at 16.110
  masters 1-3: A1 until 25.450
  A holds it until 25.347, on 3 of 3, token 0.100000

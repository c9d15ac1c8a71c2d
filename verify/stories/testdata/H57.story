# H57. A master becomes a replica of its successor and then a master again, as in a failback. It keeps its process, its
# connections and its admission record, which the successor had, too. The last lock had not been replicated to the
# successor.
# What could go wrong: the server looks like the earlier master, and grants a name that is held.
# What must hold: the identity of a server is more than its run id, and is read with each heartbeat, every 3 s. A
# replica has no vote, and a server that was one is put into quarantine.
masters 5
----

program A without=4,5
----

program B
----

A locks orders ttl=30s extension=off
----
0.201 A to masters 1-3: acquire orders for A1, 30s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 29.898, token 0.200000

master 3 becomes a replica
----

master 3 loses orders
----

wait 4s
----
1.205 A to masters 1-3: subscribe to its inbox -> done

show B
----
  masters 1-2 4-5: voting
  master 3: down: pool: master 3: info: refused: it is a replica: its role is "slave", not master: it has no vote,
        so fewer failures are tolerated; copies of locks would be counted as votes; name its master in its place,
        or make it a master again (REPLICAOF NO ONE); redlock check says which

master 3 becomes a master
----

wait 4s
----
4.600 A to master 3: begin a quarantine -> done: in quarantine since 4.600670, one of 5, longest TTL 30s,
        quarantine 30s

show B
----
  masters 1-2 4-5: voting
  master 3: quarantine for another 26.390

B tries orders
----
8.211 B to masters 1-2: acquire orders for B1, 10s, ballot 8.210000 to 8.210032 -> held by A1 for 21.990
8.211 B to masters 4-5: acquire orders for B1, 10s, ballot 8.210000 to 8.210032 -> granted
8.213 B to masters 1-2: acquire orders for B2, 10s, ballot 8.212002 to 8.212034 -> held by A1 for 21.988
8.213 B to masters 4-5: release orders of B1 -> deleted
8.213 B to masters 4-5: acquire orders for B2, 10s, ballot 8.212002 to 8.212034 -> granted
8.215 B to masters 4-5: release orders of B2 -> deleted
8.217 B to masters 1-2: acquire orders for B3, 10s, ballot 8.216008 to 8.216040 -> held by A1 for 21.984
8.217 B to masters 4-5: acquire orders for B3, 10s, ballot 8.216008 to 8.216040 -> granted
8.219 B to masters 4-5: release orders of B3 -> deleted

who holds orders
----
at 8.220
  masters 1-2: A1 until 30.201
  masters 3-5: free
  A holds it until 29.898, on 2 of 5, token 0.200000
  B waits for it

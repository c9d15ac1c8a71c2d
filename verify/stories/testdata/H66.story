# H66. The wall clock of a machine is set back by an hour.
# What could go wrong: events are delayed by an hour, such as the end of a quarantine, or a turn in the queue.
# What must hold: waiting uses a clock that cannot be set. The masters are new here: they vote 30 s after their first
# connection.
masters 3 fresh
----

program A
----
0.007 A to masters 1-3: begin a quarantine -> done: in quarantine since 0.007019, one of 3, longest TTL 30s,
        quarantine 30s

A locks orders
----
0.103 A to masters 1-3: subscribe to its inbox -> done

set wall clock of A back 1h
----

wait 15s
----

set wall clock of A back 1h
----

wait 16s
----
30.008 A to masters 1-3: end the quarantine -> done: admitted since 30.008020, one of 3, longest TTL 30s,
        quarantine 30s
30.010 A to masters 1-2: acquire orders for A1, 10s, ballot 30.009021 to 30.009053 -> granted
30.011 A has orders until 39.907, token 30.009021
30.012 A to masters 1-2: extend orders for A1 by 10s -> done
30.012 A to master 3: extend orders for A1 by 10s -> missing
30.014 A to master 3: repair orders for A1, 10s, ballot 30.013025, token 30.009021 -> granted

# The same for a call that waits for its turn.
program B
----

B locks orders
----
31.211 B to masters 1-2: acquire orders for B1, 10s, ballot 31.210000 to 31.210032 -> held by A1 for 8.801
31.211 B to master 3: acquire orders for B1, 10s, ballot 31.210000 to 31.210032 -> held by A1 for 8.803
31.215 B to masters 1-3: subscribe to its inbox -> done
31.217 B to masters 1-2: acquire orders for B2, 10s, ballot 31.216008 to 31.216040, waiter wB1 -> held by A1 for
        8.795; place 1 in the queue
31.217 B to master 3: acquire orders for B2, 10s, ballot 31.216008 to 31.216040, waiter wB1 -> held by A1 for
        8.797; place 1 in the queue
31.219 B to masters 1-2: acquire orders for B3, 10s, ballot 31.218010 to 31.218042, waiter wB1 -> held by A1 for
        8.793; place 1 in the queue
31.219 B to master 3: acquire orders for B3, 10s, ballot 31.218010 to 31.218042, waiter wB1 -> held by A1 for
        8.795; place 1 in the queue

set wall clock of B back 1h
----

A unlocks orders
----
31.221 A to masters 1-2: release orders of A1 -> deleted
31.221 masters 1-3 to B: orders is free, and wB1 is first
31.221 A to master 3: release orders of A1, fence 30.013025 -> deleted
31.222 A has unlocked orders
31.223 B to masters 1-3: acquire orders for B4, 10s, ballot 31.222002 to 31.222034, waiter wB1 -> granted
31.224 B has orders until 41.120, token 31.222002

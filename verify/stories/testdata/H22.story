# H22. An extension is on its way when the lock is released.
# What could go wrong: the extension arrives after the release and creates the lock again, or a timer sends one more.
# What must hold: nothing is sent for a lock after its release. On each connection the extension comes first, and finds
# the lock; the release comes after it, and deletes the lock.
masters 3
----

program A
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

wait 3200ms
----
1.105 A to masters 1-3: subscribe to its inbox -> done

hold messages from A to 3
----

wait 150ms
----
3.434 A to masters 1-2: extend orders for A1 by 10s -> done

A unlocks orders
----
3.461 A to masters 1-2: release orders of A1 -> deleted
3.462 A has unlocked orders

deliver messages from A to 3
----
3.471 A to master 3: extend orders for A1 by 10s -> done
3.471 A to master 3: release orders of A1 -> deleted

wait 20s
----

who holds orders
----
at 23.480
  masters 1-3: free
  A does not hold it

# Another master has lost the lock. An extension has detected that, but its answers arrive after the release. The lock
# is not restored on that master any more.
A locks orders
----
23.481 A to masters 1-3: acquire orders for A2, 10s, ballot 23.480000 to 23.480032 -> granted
23.482 A has orders until 33.378, token 23.480000

master 3 loses orders
----

wait 3200ms
----
24.485 A to masters 1-3: subscribe to its inbox -> done

hold answers from 1-3 to A
----

wait 150ms
----
26.814 A to masters 1-2: extend orders for A2 by 10s -> done
26.814 A to master 3: extend orders for A2 by 10s -> missing

A unlocks orders
----
26.841 A to masters 1-2: release orders of A2 -> deleted
26.841 A to master 3: release orders of A2 -> was not there

deliver answers from 1-3 to A
----
26.851 A has unlocked orders

wait 20s
----

who holds orders
----
at 46.860
  masters 1-3: free
  A does not hold it

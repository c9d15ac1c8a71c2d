# H83. The masters restart empty one after the other, while another client waits for the lock.
# What could go wrong: the lock is not restored on a master that is back, because a client waits, or because the master
# is in quarantine. After three restarts the leader has lost its lock.
# What must hold: a repair follows a majority that has confirmed the lock, so neither prevents it.
masters 5
----

program A B
----

A locks orders
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

B locks orders
----
0.111 B to masters 1-5: acquire orders for B1, 10s, ballot 0.110000 to 0.110032 -> held by A1 for 9.990
0.115 B to masters 1-5: subscribe to its inbox -> done
0.117 B to masters 1-5: acquire orders for B2, 10s, ballot 0.116008 to 0.116040, waiter wB1 -> held by A1 for
        9.984; place 1 in the queue
0.119 B to masters 1-5: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> held by A1 for
        9.982; place 1 in the queue

master 1 restarts empty
----

wait 4s
----
0.121 B to masters 4-5: release orders of B3, waiter wB1 stays -> was not there
0.136 B to master 1: subscribe to its inbox -> done
0.138 A to masters 2-5: extend orders for A1 by 10s -> done
0.138 B to master 1: release orders of B3, fence 0.118042 -> was not there
0.138 A to master 1: extend orders for A1 by 10s -> missing
0.140 A to master 1: begin a quarantine -> done: in quarantine since 0.140838, one of 5, longest TTL 30s,
        quarantine 30s
0.140 A to master 1: repair orders for A1, 10s, ballot 0.139838, token 0.100000 -> no vote: in quarantine since
        0.140838, one of 5, longest TTL 30s, quarantine 30s
0.142 B to masters 2-5: acquire orders for B4, 10s, ballot 0.141825 to 0.141857, waiter wB1 -> held by A1 for
        9.996; place 1 in the queue
0.142 A to master 1: extend orders for A1 by 10s -> missing
0.142 A to masters 2-5: extend orders for A1 by 10s -> done
0.144 B to masters 4-5: release orders of B4, waiter wB1 stays -> was not there
0.144 A to master 1: repair orders for A1, 10s, ballot 0.143842, token 0.100000 -> granted
1.105 A to masters 1-5: subscribe to its inbox -> done
1.144 B to masters 2-5: acquire orders for B5, 10s, ballot 1.143827 to 1.143859, waiter wB1 -> held by A1 for
        8.998; place 1 in the queue
1.146 B to masters 4-5: release orders of B5, waiter wB1 stays -> was not there
2.146 B to masters 2-5: acquire orders for B6, 10s, ballot 2.145829 to 2.145861, waiter wB1 -> held by A1 for
        7.996; place 1 in the queue
2.148 B to masters 4-5: release orders of B6, waiter wB1 stays -> was not there
3.148 B to masters 2-5: acquire orders for B7, 10s, ballot 3.147831 to 3.147863, waiter wB1 -> held by A1 for
        6.994; place 1 in the queue
3.150 B to masters 4-5: release orders of B7, waiter wB1 stays -> was not there
3.476 A to masters 1-5: extend orders for A1 by 10s -> done

master 2 restarts empty
----

wait 4s
----
4.123 A to master 2: subscribe to its inbox -> done
4.123 B to master 2: subscribe to its inbox -> done
4.125 B to masters 3-5: acquire orders for B8, 10s, ballot 4.124006 to 4.124038, waiter wB1 -> held by A1 for
        9.351; place 1 in the queue
4.125 A to masters 1 3-5: extend orders for A1 by 10s -> done
4.125 A to master 2: extend orders for A1 by 10s -> missing
4.127 B to masters 4-5: release orders of B8, waiter wB1 stays -> was not there
4.127 A to master 2: begin a quarantine -> done: in quarantine since 4.127019, one of 5, longest TTL 30s,
        quarantine 30s
4.127 B to master 2: begin a quarantine -> not done, the record has changed: in quarantine since 4.127019, one of
        5, longest TTL 30s, quarantine 30s
4.127 A to master 2: repair orders for A1, 10s, ballot 4.126019, token 0.100000 -> no vote: in quarantine since
        4.127019, one of 5, longest TTL 30s, quarantine 30s
4.129 A to master 2: extend orders for A1 by 10s -> missing
4.129 A to masters 1 3-5: extend orders for A1 by 10s -> done
4.131 A to master 2: repair orders for A1, 10s, ballot 4.130023, token 0.100000 -> granted
5.127 B to masters 3-5: acquire orders for B9, 10s, ballot 5.126008 to 5.126040, waiter wB1 -> held by A1 for
        9.002; place 1 in the queue
5.129 B to masters 4-5: release orders of B9, waiter wB1 stays -> was not there
6.129 B to masters 3-5: acquire orders for B10, 10s, ballot 6.128010 to 6.128042, waiter wB1 -> held by A1 for
        8.000; place 1 in the queue
6.131 B to masters 4-5: release orders of B10, waiter wB1 stays -> was not there
7.131 B to masters 3-5: acquire orders for B11, 10s, ballot 7.130012 to 7.130044, waiter wB1 -> held by A1 for
        6.998; place 1 in the queue
7.133 B to masters 4-5: release orders of B11, waiter wB1 stays -> was not there
7.462 A to masters 1-5: extend orders for A1 by 10s -> done

who holds orders
----
at 8.120
  masters 1-5: A1 until 17.462
  A holds it until 17.359, on 5 of 5, token 0.100000
  B waits for it

show B
----
  master 1: quarantine for another 22.020
  master 2: quarantine for another 26.007
  masters 3-5: voting

master 3 restarts empty
----

wait 4s
----
8.123 A to master 3: subscribe to its inbox -> done
8.123 B to master 3: subscribe to its inbox -> done
8.125 B to masters 1-2 4-5: release orders, waiter wB1 leaves -> done
8.125 A to masters 1-2 4-5: extend orders for A1 by 10s -> done
8.125 A to master 3: extend orders for A1 by 10s -> missing
8.127 A to master 3: begin a quarantine -> done: in quarantine since 8.127019, one of 5, longest TTL 30s,
        quarantine 30s
8.127 B to master 3: begin a quarantine -> not done, the record has changed: in quarantine since 8.127019, one of
        5, longest TTL 30s, quarantine 30s
8.127 A to master 3: repair orders for A1, 10s, ballot 8.126019, token 0.100000 -> no vote: in quarantine since
        8.127019, one of 5, longest TTL 30s, quarantine 30s
8.129 A to master 3: extend orders for A1 by 10s -> missing
8.129 A to masters 1-2 4-5: extend orders for A1 by 10s -> done
8.131 A to master 3: repair orders for A1, 10s, ballot 8.130023, token 0.100000 -> granted
11.462 A to masters 1-5: extend orders for A1 by 10s -> done

who holds orders
----
at 12.120
  masters 1-5: A1 until 21.462
  A holds it until 21.359, on 5 of 5, token 0.100000
  B waits for it

show B
----
  master 1: quarantine for another 18.020
  master 2: quarantine for another 22.007
  master 3: quarantine for another 26.007
  masters 4-5: voting

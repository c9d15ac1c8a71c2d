# H53. A master restarts empty under a lock.
# What could go wrong: three of five masters have the lock. One of the three has forgotten it, and grants the name to
# another client, with the two that never had it: two holders.
# What must hold: a master that may have forgotten does not vote until nothing from before can be held: 30 s here.
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

who holds orders
----
at 0.210
  masters 1-3: A1 until 30.201
  masters 4-5: free
  A holds it until 29.898, on 3 of 5, token 0.200000
  B does not hold it

master 3 restarts empty
----

wait 1s
----
0.230 A to master 3: begin a quarantine -> done: in quarantine since 0.230838, one of 5, longest TTL 30s,
        quarantine 30s
0.230 B to master 3: begin a quarantine -> not done, the record has changed: in quarantine since 0.230838, one of
        5, longest TTL 30s, quarantine 30s
1.205 A to masters 1-3: subscribe to its inbox -> done

show B
----
  masters 1-2 4-5: voting
  master 3: quarantine for another 29.020

# Masters 1 and 2 have it for A, and master 3 does not vote. So the grants of masters 4 and 5 are no majority, and are
# rolled back. No lease has a majority either, so B tries again for half a second before its call ends.
B tries orders ttl=30s
----
1.211 B to masters 1-2: acquire orders for B1, 30s, ballot 1.210000 to 1.210032 -> held by A1 for 28.990
1.211 B to masters 4-5: acquire orders for B1, 30s, ballot 1.210000 to 1.210032 -> granted
1.213 B to masters 1-2: acquire orders for B2, 30s, ballot 1.212002 to 1.212034 -> held by A1 for 28.988
1.213 B to masters 4-5: release orders of B1 -> deleted
1.213 B to masters 4-5: acquire orders for B2, 30s, ballot 1.212002 to 1.212034 -> granted
1.215 B to masters 4-5: release orders of B2 -> deleted
1.217 B to masters 1-2: acquire orders for B3, 30s, ballot 1.216008 to 1.216040 -> held by A1 for 28.984
1.217 B to masters 4-5: acquire orders for B3, 30s, ballot 1.216008 to 1.216040 -> granted
1.219 B to masters 4-5: release orders of B3 -> deleted

who holds orders
----
at 1.220
  masters 1-2: A1 until 30.201
  masters 3-5: free
  A holds it until 29.898, on 2 of 5, token 0.200000
  B waits for it

# 30 s after the restart the master votes again. By then A has been notified of the loss.
wait 29s
----
1.223 B to masters 1-2: acquire orders for B4, 30s, ballot 1.222014 to 1.222046 -> held by A1 for 28.978
1.223 B to masters 4-5: acquire orders for B4, 30s, ballot 1.222014 to 1.222046 -> granted
1.225 B to masters 4-5: release orders of B4 -> deleted
1.231 B to masters 1-2: acquire orders for B5, 30s, ballot 1.230022 to 1.230054 -> held by A1 for 28.970
1.231 B to masters 4-5: acquire orders for B5, 30s, ballot 1.230022 to 1.230054 -> granted
1.233 B to masters 4-5: release orders of B5 -> deleted
1.241 B to masters 1-2: acquire orders for B6, 30s, ballot 1.240032 to 1.240064 -> held by A1 for 28.960
1.241 B to masters 4-5: acquire orders for B6, 30s, ballot 1.240032 to 1.240064 -> granted
1.243 B to masters 4-5: release orders of B6 -> deleted
1.253 B to masters 1-2: acquire orders for B7, 30s, ballot 1.252044 to 1.252076 -> held by A1 for 28.948
1.253 B to masters 4-5: acquire orders for B7, 30s, ballot 1.252044 to 1.252076 -> granted
1.255 B to masters 4-5: release orders of B7 -> deleted
1.267 B to masters 1-2: acquire orders for B8, 30s, ballot 1.266058 to 1.266090 -> held by A1 for 28.934
1.267 B to masters 4-5: acquire orders for B8, 30s, ballot 1.266058 to 1.266090 -> granted
1.269 B to masters 4-5: release orders of B8 -> deleted
1.283 B to masters 1-2: acquire orders for B9, 30s, ballot 1.282074 to 1.282106 -> held by A1 for 28.918
1.283 B to masters 4-5: acquire orders for B9, 30s, ballot 1.282074 to 1.282106 -> granted
1.285 B to masters 4-5: release orders of B9 -> deleted
1.301 B to masters 1-2: acquire orders for B10, 30s, ballot 1.300092 to 1.300124 -> held by A1 for 28.900
1.301 B to masters 4-5: acquire orders for B10, 30s, ballot 1.300092 to 1.300124 -> granted
1.303 B to masters 4-5: release orders of B10 -> deleted
1.321 B to masters 1-2: acquire orders for B11, 30s, ballot 1.320112 to 1.320144 -> held by A1 for 28.880
1.321 B to masters 4-5: acquire orders for B11, 30s, ballot 1.320112 to 1.320144 -> granted
1.323 B to masters 4-5: release orders of B11 -> deleted
1.343 B to masters 1-2: acquire orders for B12, 30s, ballot 1.342134 to 1.342166 -> held by A1 for 28.858
1.343 B to masters 4-5: acquire orders for B12, 30s, ballot 1.342134 to 1.342166 -> granted
1.345 B to masters 4-5: release orders of B12 -> deleted
1.367 B to masters 1-2: acquire orders for B13, 30s, ballot 1.366158 to 1.366190 -> held by A1 for 28.834
1.367 B to masters 4-5: acquire orders for B13, 30s, ballot 1.366158 to 1.366190 -> granted
1.369 B to masters 4-5: release orders of B13 -> deleted
1.393 B to masters 1-2: acquire orders for B14, 30s, ballot 1.392184 to 1.392216 -> held by A1 for 28.808
1.393 B to masters 4-5: acquire orders for B14, 30s, ballot 1.392184 to 1.392216 -> granted
1.395 B to masters 4-5: release orders of B14 -> deleted
1.421 B to masters 1-2: acquire orders for B15, 30s, ballot 1.420212 to 1.420244 -> held by A1 for 28.780
1.421 B to masters 4-5: acquire orders for B15, 30s, ballot 1.420212 to 1.420244 -> granted
1.423 B to masters 4-5: release orders of B15 -> deleted
1.451 B to masters 1-2: acquire orders for B16, 30s, ballot 1.450242 to 1.450274 -> held by A1 for 28.750
1.451 B to masters 4-5: acquire orders for B16, 30s, ballot 1.450242 to 1.450274 -> granted
1.453 B to masters 4-5: release orders of B16 -> deleted
1.483 B to masters 1-2: acquire orders for B17, 30s, ballot 1.482274 to 1.482306 -> held by A1 for 28.718
1.483 B to masters 4-5: acquire orders for B17, 30s, ballot 1.482274 to 1.482306 -> granted
1.485 B to masters 4-5: release orders of B17 -> deleted
1.517 B to masters 1-2: acquire orders for B18, 30s, ballot 1.516308 to 1.516340 -> held by A1 for 28.684
1.517 B to masters 4-5: acquire orders for B18, 30s, ballot 1.516308 to 1.516340 -> granted
1.519 B to masters 4-5: release orders of B18 -> deleted
1.553 B to masters 1-2: acquire orders for B19, 30s, ballot 1.552344 to 1.552376 -> held by A1 for 28.648
1.553 B to masters 4-5: acquire orders for B19, 30s, ballot 1.552344 to 1.552376 -> granted
1.555 B to masters 4-5: release orders of B19 -> deleted
1.591 B to masters 1-2: acquire orders for B20, 30s, ballot 1.590382 to 1.590414 -> held by A1 for 28.610
1.591 B to masters 4-5: acquire orders for B20, 30s, ballot 1.590382 to 1.590414 -> granted
1.593 B to masters 4-5: release orders of B20 -> deleted
1.631 B to masters 1-2: acquire orders for B21, 30s, ballot 1.630422 to 1.630454 -> held by A1 for 28.570
1.631 B to masters 4-5: acquire orders for B21, 30s, ballot 1.630422 to 1.630454 -> granted
1.633 B to masters 4-5: release orders of B21 -> deleted
1.673 B to masters 1-2: acquire orders for B22, 30s, ballot 1.672464 to 1.672496 -> held by A1 for 28.528
1.673 B to masters 4-5: acquire orders for B22, 30s, ballot 1.672464 to 1.672496 -> granted
1.674 B cannot lock orders; the call ends after 0.464: lock "orders": no quorum of masters: the votes are split,
        and no client has a majority; 2 of 5 masters agreed, quorum is 3; master 3: lock: the master is in
        quarantine until 00:00:30 UTC by its clock, since it is new or may have forgotten locks
1.675 B to masters 4-5: release orders of B22 -> deleted
29.898 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time

who holds orders
----
at 30.220
  masters 1-5: free
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B does not hold it

wait 2s
----
30.232 A to master 3: end the quarantine -> done: admitted since 30.232840, one of 5, longest TTL 30s, quarantine
        30s
30.232 B to master 3: end the quarantine -> not done, the record has changed: admitted since 30.232840, one of 5,
        longest TTL 30s, quarantine 30s

show B
----
  masters 1-5: voting

B tries orders
----
32.221 B to masters 1-5: acquire orders for B23, 10s, ballot 32.220000 to 32.220032 -> granted
32.222 B has orders until 42.118, token 32.220000

who holds orders
----
at 32.230
  masters 1-5: B23 until 42.221
  A knows that its lock has ended: the lock was lost: no majority extended it in time
  B holds it until 42.118, on 5 of 5, token 32.220000

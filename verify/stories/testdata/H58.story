# H58. Two clients have different max TTLs.
# What could go wrong: the client with 5 s lets a master that has forgotten vote while the other one holds a lock of 55
# s.
# What must hold: the max TTL is stored on the masters and belongs to the deployment. The larger one applies.
masters 5 guard=1m
----

program A guard=1m without=4,5
----

program B guard=5s ttl=3s
----

A locks orders ttl=55s extension=off
----
0.201 A to masters 1-3: acquire orders for A1, 55s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 54.648, token 0.200000

# B is the first to reach the master that has forgotten.
cut A from 3
----

master 3 restarts empty
----

wait 31s
----
0.230 B to master 3: begin a quarantine -> done: in quarantine since 0.230838, one of 5, longest TTL 1m0s,
        quarantine 1m0s
1.205 A to masters 1-2: subscribe to its inbox -> done

show B
----
  masters 1-2 4-5: voting
  master 3: quarantine for another 29.020

B tries orders
----
31.211 B to masters 1-2: acquire orders for B1, 3s, ballot 31.210000 to 31.210032 -> held by A1 for 23.990
31.211 B to masters 4-5: acquire orders for B1, 3s, ballot 31.210000 to 31.210032 -> granted
31.213 B to masters 1-2: acquire orders for B2, 3s, ballot 31.212002 to 31.212034 -> held by A1 for 23.988
31.213 B to masters 4-5: release orders of B1 -> deleted
31.213 B to masters 4-5: acquire orders for B2, 3s, ballot 31.212002 to 31.212034 -> granted
31.215 B to masters 4-5: release orders of B2 -> deleted
31.217 B to masters 1-2: acquire orders for B3, 3s, ballot 31.216008 to 31.216040 -> held by A1 for 23.984
31.217 B to masters 4-5: acquire orders for B3, 3s, ballot 31.216008 to 31.216040 -> granted
31.219 B to masters 4-5: release orders of B3 -> deleted

who holds orders
----
at 31.220
  masters 1-2: A1 until 55.201
  masters 3-5: free
  A holds it until 54.648, on 2 of 5, token 0.200000
  B waits for it

# After a minute A's lock has expired as well.
wait 30s
----
31.223 B to masters 1-2: acquire orders for B4, 3s, ballot 31.222014 to 31.222046 -> held by A1 for 23.978
31.223 B to masters 4-5: acquire orders for B4, 3s, ballot 31.222014 to 31.222046 -> granted
31.225 B to masters 4-5: release orders of B4 -> deleted
31.231 B to masters 1-2: acquire orders for B5, 3s, ballot 31.230022 to 31.230054 -> held by A1 for 23.970
31.231 B to masters 4-5: acquire orders for B5, 3s, ballot 31.230022 to 31.230054 -> granted
31.233 B to masters 4-5: release orders of B5 -> deleted
31.241 B to masters 1-2: acquire orders for B6, 3s, ballot 31.240032 to 31.240064 -> held by A1 for 23.960
31.241 B to masters 4-5: acquire orders for B6, 3s, ballot 31.240032 to 31.240064 -> granted
31.243 B to masters 4-5: release orders of B6 -> deleted
31.253 B to masters 1-2: acquire orders for B7, 3s, ballot 31.252044 to 31.252076 -> held by A1 for 23.948
31.253 B to masters 4-5: acquire orders for B7, 3s, ballot 31.252044 to 31.252076 -> granted
31.255 B to masters 4-5: release orders of B7 -> deleted
31.267 B to masters 1-2: acquire orders for B8, 3s, ballot 31.266058 to 31.266090 -> held by A1 for 23.934
31.267 B to masters 4-5: acquire orders for B8, 3s, ballot 31.266058 to 31.266090 -> granted
31.269 B to masters 4-5: release orders of B8 -> deleted
31.283 B to masters 1-2: acquire orders for B9, 3s, ballot 31.282074 to 31.282106 -> held by A1 for 23.918
31.283 B to masters 4-5: acquire orders for B9, 3s, ballot 31.282074 to 31.282106 -> granted
31.285 B to masters 4-5: release orders of B9 -> deleted
31.301 B to masters 1-2: acquire orders for B10, 3s, ballot 31.300092 to 31.300124 -> held by A1 for 23.900
31.301 B to masters 4-5: acquire orders for B10, 3s, ballot 31.300092 to 31.300124 -> granted
31.303 B to masters 4-5: release orders of B10 -> deleted
31.321 B to masters 1-2: acquire orders for B11, 3s, ballot 31.320112 to 31.320144 -> held by A1 for 23.880
31.321 B to masters 4-5: acquire orders for B11, 3s, ballot 31.320112 to 31.320144 -> granted
31.323 B to masters 4-5: release orders of B11 -> deleted
31.343 B to masters 1-2: acquire orders for B12, 3s, ballot 31.342134 to 31.342166 -> held by A1 for 23.858
31.343 B to masters 4-5: acquire orders for B12, 3s, ballot 31.342134 to 31.342166 -> granted
31.345 B to masters 4-5: release orders of B12 -> deleted
31.367 B to masters 1-2: acquire orders for B13, 3s, ballot 31.366158 to 31.366190 -> held by A1 for 23.834
31.367 B to masters 4-5: acquire orders for B13, 3s, ballot 31.366158 to 31.366190 -> granted
31.369 B to masters 4-5: release orders of B13 -> deleted
31.393 B to masters 1-2: acquire orders for B14, 3s, ballot 31.392184 to 31.392216 -> held by A1 for 23.808
31.393 B to masters 4-5: acquire orders for B14, 3s, ballot 31.392184 to 31.392216 -> granted
31.395 B to masters 4-5: release orders of B14 -> deleted
31.421 B to masters 1-2: acquire orders for B15, 3s, ballot 31.420212 to 31.420244 -> held by A1 for 23.780
31.421 B to masters 4-5: acquire orders for B15, 3s, ballot 31.420212 to 31.420244 -> granted
31.423 B to masters 4-5: release orders of B15 -> deleted
31.451 B to masters 1-2: acquire orders for B16, 3s, ballot 31.450242 to 31.450274 -> held by A1 for 23.750
31.451 B to masters 4-5: acquire orders for B16, 3s, ballot 31.450242 to 31.450274 -> granted
31.453 B to masters 4-5: release orders of B16 -> deleted
31.483 B to masters 1-2: acquire orders for B17, 3s, ballot 31.482274 to 31.482306 -> held by A1 for 23.718
31.483 B to masters 4-5: acquire orders for B17, 3s, ballot 31.482274 to 31.482306 -> granted
31.485 B to masters 4-5: release orders of B17 -> deleted
31.517 B to masters 1-2: acquire orders for B18, 3s, ballot 31.516308 to 31.516340 -> held by A1 for 23.684
31.517 B to masters 4-5: acquire orders for B18, 3s, ballot 31.516308 to 31.516340 -> granted
31.519 B to masters 4-5: release orders of B18 -> deleted
31.553 B to masters 1-2: acquire orders for B19, 3s, ballot 31.552344 to 31.552376 -> held by A1 for 23.648
31.553 B to masters 4-5: acquire orders for B19, 3s, ballot 31.552344 to 31.552376 -> granted
31.555 B to masters 4-5: release orders of B19 -> deleted
31.591 B to masters 1-2: acquire orders for B20, 3s, ballot 31.590382 to 31.590414 -> held by A1 for 23.610
31.591 B to masters 4-5: acquire orders for B20, 3s, ballot 31.590382 to 31.590414 -> granted
31.593 B to masters 4-5: release orders of B20 -> deleted
31.631 B to masters 1-2: acquire orders for B21, 3s, ballot 31.630422 to 31.630454 -> held by A1 for 23.570
31.631 B to masters 4-5: acquire orders for B21, 3s, ballot 31.630422 to 31.630454 -> granted
31.633 B to masters 4-5: release orders of B21 -> deleted
31.673 B to masters 1-2: acquire orders for B22, 3s, ballot 31.672464 to 31.672496 -> held by A1 for 23.528
31.673 B to masters 4-5: acquire orders for B22, 3s, ballot 31.672464 to 31.672496 -> granted
31.674 B cannot lock orders; the call ends after 0.464: lock "orders": no quorum of masters: the votes are split,
        and no client has a majority; 2 of 5 masters agreed, quorum is 3; master 3: lock: the master is in
        quarantine until 00:01:00 UTC by its clock, since it is new or may have forgotten locks
31.675 B to masters 4-5: release orders of B22 -> deleted
54.648 A learns that its lock of orders has ended: the lock was lost: no majority extended it in time
60.232 B to master 3: end the quarantine -> done: admitted since 60.232840, one of 5, longest TTL 1m0s,
        quarantine 1m0s

show B
----
  masters 1-5: voting

B tries orders
----
61.221 B to masters 1-5: acquire orders for B23, 3s, ballot 61.220000 to 61.220032 -> granted
61.222 B has orders until 64.188, token 61.220000

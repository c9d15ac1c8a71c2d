# H88. The holder cannot reach one master, where the name is free therefore.
# What could go wrong: the first waiter wins it there, rolls back, is told by its own roll-back, and asks again at once:
# five hundred times a second.
# What must hold: the pause after a first hint doubles with each lost round, up to a second.
masters 3
----

program A without=3
----

program B
----

A locks orders
----
0.201 A to masters 1-2: acquire orders for A1, 10s, ballot 0.200000 to 0.200032 -> granted
0.202 A has orders until 10.098, token 0.200000

B locks orders
----
0.211 B to masters 1-2: acquire orders for B1, 10s, ballot 0.210000 to 0.210032 -> held by A1 for 9.990
0.211 B to master 3: acquire orders for B1, 10s, ballot 0.210000 to 0.210032 -> granted
0.213 B to master 3: release orders of B1 -> deleted
0.215 B to masters 1-3: subscribe to its inbox -> done
0.217 B to masters 1-2: acquire orders for B2, 10s, ballot 0.216008 to 0.216040, waiter wB1 -> held by A1 for
        9.984; place 1 in the queue
0.217 B to master 3: acquire orders for B2, 10s, ballot 0.216008 to 0.216040, waiter wB1 -> granted
0.219 master 3 to B: orders is free, and wB1 is first
0.219 B to master 3: release orders of B2, waiter wB1 stays -> deleted

wait 3s
----
0.221 B to masters 1-2: acquire orders for B3, 10s, ballot 0.220008 to 0.220040, waiter wB1 -> held by A1 for
        9.980; place 1 in the queue
0.221 B to master 3: acquire orders for B3, 10s, ballot 0.220008 to 0.220040, waiter wB1 -> granted
0.223 master 3 to B: orders is free, and wB1 is first
0.223 B to master 3: release orders of B3, waiter wB1 stays -> deleted
0.229 B to masters 1-2: acquire orders for B4, 10s, ballot 0.228012 to 0.228044, waiter wB1 -> held by A1 for
        9.972; place 1 in the queue
0.229 B to master 3: acquire orders for B4, 10s, ballot 0.228012 to 0.228044, waiter wB1 -> granted
0.231 master 3 to B: orders is free, and wB1 is first
0.231 B to master 3: release orders of B4, waiter wB1 stays -> deleted
0.249 B to masters 1-2: acquire orders for B5, 10s, ballot 0.248016 to 0.248048, waiter wB1 -> held by A1 for
        9.952; place 1 in the queue
0.249 B to master 3: acquire orders for B5, 10s, ballot 0.248016 to 0.248048, waiter wB1 -> granted
0.251 master 3 to B: orders is free, and wB1 is first
0.251 B to master 3: release orders of B5, waiter wB1 stays -> deleted
0.285 B to masters 1-2: acquire orders for B6, 10s, ballot 0.284020 to 0.284052, waiter wB1 -> held by A1 for
        9.916; place 1 in the queue
0.285 B to master 3: acquire orders for B6, 10s, ballot 0.284020 to 0.284052, waiter wB1 -> granted
0.287 master 3 to B: orders is free, and wB1 is first
0.287 B to master 3: release orders of B6, waiter wB1 stays -> deleted
0.353 B to masters 1-2: acquire orders for B7, 10s, ballot 0.352024 to 0.352056, waiter wB1 -> held by A1 for
        9.848; place 1 in the queue
0.353 B to master 3: acquire orders for B7, 10s, ballot 0.352024 to 0.352056, waiter wB1 -> granted
0.355 master 3 to B: orders is free, and wB1 is first
0.355 B to master 3: release orders of B7, waiter wB1 stays -> deleted
0.485 B to masters 1-2: acquire orders for B8, 10s, ballot 0.484028 to 0.484060, waiter wB1 -> held by A1 for
        9.716; place 1 in the queue
0.485 B to master 3: acquire orders for B8, 10s, ballot 0.484028 to 0.484060, waiter wB1 -> granted
0.487 master 3 to B: orders is free, and wB1 is first
0.487 B to master 3: release orders of B8, waiter wB1 stays -> deleted
0.745 B to masters 1-2: acquire orders for B9, 10s, ballot 0.744032 to 0.744064, waiter wB1 -> held by A1 for
        9.456; place 1 in the queue
0.745 B to master 3: acquire orders for B9, 10s, ballot 0.744032 to 0.744064, waiter wB1 -> granted
0.747 master 3 to B: orders is free, and wB1 is first
0.747 B to master 3: release orders of B9, waiter wB1 stays -> deleted
1.261 B to masters 1-2: acquire orders for B10, 10s, ballot 1.260036 to 1.260068, waiter wB1 -> held by A1 for
        8.940; place 1 in the queue
1.261 B to master 3: acquire orders for B10, 10s, ballot 1.260036 to 1.260068, waiter wB1 -> granted
1.263 master 3 to B: orders is free, and wB1 is first
1.263 B to master 3: release orders of B10, waiter wB1 stays -> deleted
2.263 B to masters 1-2: acquire orders for B11, 10s, ballot 2.262038 to 2.262070, waiter wB1 -> held by A1 for
        7.938; place 1 in the queue
2.263 B to master 3: acquire orders for B11, 10s, ballot 2.262038 to 2.262070, waiter wB1 -> granted
2.265 master 3 to B: orders is free, and wB1 is first
2.265 B to master 3: release orders of B11, waiter wB1 stays -> deleted

A unlocks orders
----
3.221 A to masters 1-2: release orders of A1 -> deleted
3.221 masters 1-2 to B: orders is free, and wB1 is first
3.222 A has unlocked orders
3.223 B to masters 1-3: acquire orders for B12, 10s, ballot 3.222002 to 3.222034, waiter wB1 -> granted
3.224 B has orders until 13.120, token 3.222002

who holds orders
----
at 3.230
  masters 1-3: B12 until 13.223
  A does not hold it
  B holds it until 13.120, on 3 of 3, token 3.222002

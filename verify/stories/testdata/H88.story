# H88. The holder cannot reach one master, so the name is free there.
# What could go wrong: the first waiter wins it there, rolls back, is woken by its own rollback, and tries again at
# once: five hundred times a second.
# What must hold: the pause after a first wake-up doubles with each lost round, up to a second.
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
0.219 B to masters 1-2: acquire orders for B3, 10s, ballot 0.218010 to 0.218042, waiter wB1 -> held by A1 for
        9.982; place 1 in the queue
0.219 B to master 3: acquire orders for B3, 10s, ballot 0.218010 to 0.218042, waiter wB1 -> held by B2 for 9.998;
        place 1 in the queue
0.219 master 3 to B: orders is free, and wB1 is first
0.219 B to master 3: release orders of B2, waiter wB1 stays -> deleted

wait 3s
----
0.225 B to masters 1-2: acquire orders for B4, 10s, ballot 0.224013 to 0.224045, waiter wB1 -> held by A1 for
        9.976; place 1 in the queue
0.225 B to master 3: acquire orders for B4, 10s, ballot 0.224013 to 0.224045, waiter wB1 -> granted
0.227 master 3 to B: orders is free, and wB1 is first
0.227 B to master 3: release orders of B4, waiter wB1 stays -> deleted
0.237 B to masters 1-2: acquire orders for B5, 10s, ballot 0.236017 to 0.236049, waiter wB1 -> held by A1 for
        9.964; place 1 in the queue
0.237 B to master 3: acquire orders for B5, 10s, ballot 0.236017 to 0.236049, waiter wB1 -> granted
0.239 master 3 to B: orders is free, and wB1 is first
0.239 B to master 3: release orders of B5, waiter wB1 stays -> deleted
0.257 B to masters 1-2: acquire orders for B6, 10s, ballot 0.256021 to 0.256053, waiter wB1 -> held by A1 for
        9.944; place 1 in the queue
0.257 B to master 3: acquire orders for B6, 10s, ballot 0.256021 to 0.256053, waiter wB1 -> granted
0.259 master 3 to B: orders is free, and wB1 is first
0.259 B to master 3: release orders of B6, waiter wB1 stays -> deleted
0.293 B to masters 1-2: acquire orders for B7, 10s, ballot 0.292025 to 0.292057, waiter wB1 -> held by A1 for
        9.908; place 1 in the queue
0.293 B to master 3: acquire orders for B7, 10s, ballot 0.292025 to 0.292057, waiter wB1 -> granted
0.295 master 3 to B: orders is free, and wB1 is first
0.295 B to master 3: release orders of B7, waiter wB1 stays -> deleted
0.361 B to masters 1-2: acquire orders for B8, 10s, ballot 0.360029 to 0.360061, waiter wB1 -> held by A1 for
        9.840; place 1 in the queue
0.361 B to master 3: acquire orders for B8, 10s, ballot 0.360029 to 0.360061, waiter wB1 -> granted
0.363 master 3 to B: orders is free, and wB1 is first
0.363 B to master 3: release orders of B8, waiter wB1 stays -> deleted
0.493 B to masters 1-2: acquire orders for B9, 10s, ballot 0.492033 to 0.492065, waiter wB1 -> held by A1 for
        9.708; place 1 in the queue
0.493 B to master 3: acquire orders for B9, 10s, ballot 0.492033 to 0.492065, waiter wB1 -> granted
0.495 master 3 to B: orders is free, and wB1 is first
0.495 B to master 3: release orders of B9, waiter wB1 stays -> deleted
0.753 B to masters 1-2: acquire orders for B10, 10s, ballot 0.752037 to 0.752069, waiter wB1 -> held by A1 for
        9.448; place 1 in the queue
0.753 B to master 3: acquire orders for B10, 10s, ballot 0.752037 to 0.752069, waiter wB1 -> granted
0.755 master 3 to B: orders is free, and wB1 is first
0.755 B to master 3: release orders of B10, waiter wB1 stays -> deleted
1.205 A to masters 1-2: subscribe to its inbox -> done
1.269 B to masters 1-2: acquire orders for B11, 10s, ballot 1.268041 to 1.268073, waiter wB1 -> held by A1 for
        8.932; place 1 in the queue
1.269 B to master 3: acquire orders for B11, 10s, ballot 1.268041 to 1.268073, waiter wB1 -> granted
1.271 master 3 to B: orders is free, and wB1 is first
1.271 B to master 3: release orders of B11, waiter wB1 stays -> deleted
2.271 B to masters 1-2: acquire orders for B12, 10s, ballot 2.270043 to 2.270075, waiter wB1 -> held by A1 for
        7.930; place 1 in the queue
2.271 B to master 3: acquire orders for B12, 10s, ballot 2.270043 to 2.270075, waiter wB1 -> granted
2.273 master 3 to B: orders is free, and wB1 is first
2.273 B to master 3: release orders of B12, waiter wB1 stays -> deleted

A unlocks orders
----
3.221 A to masters 1-2: release orders of A1 -> deleted
3.221 masters 1-2 to B: orders is free, and wB1 is first
3.222 A has unlocked orders
3.223 B to masters 1-3: acquire orders for B13, 10s, ballot 3.222002 to 3.222034, waiter wB1 -> granted
3.224 B has orders until 13.120, token 3.222002

who holds orders
----
at 3.230
  masters 1-3: B13 until 13.223
  A does not hold it
  B holds it until 13.120, on 3 of 3, token 3.222002

# H42. Waiters die, or hang, while they are in the queue.
# What could go wrong: a dead waiter is first, and blocks those behind it for as long as the masters remember it.
# What must hold: a dead waiter, whose subscription has ended, is skipped at once. A waiter that hangs delays the others
# for a second.
masters 3
----

program A B C D E
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

B locks orders
----
0.111 B to masters 1-3: acquire orders for B1, 10s, ballot 0.110000 to 0.110032 -> held by A1 for 9.990
0.115 B to masters 1-3: subscribe to its inbox -> done
0.117 B to masters 1-3: acquire orders for B2, 10s, ballot 0.116008 to 0.116040, waiter wB1 -> held by A1 for
        9.984; place 1 in the queue
0.119 B to masters 1-3: acquire orders for B3, 10s, ballot 0.118010 to 0.118042, waiter wB1 -> held by A1 for
        9.982; place 1 in the queue

C locks orders
----
0.121 C to masters 1-3: acquire orders for C1, 10s, ballot 0.120000 to 0.120032 -> held by A1 for 9.980
0.125 C to masters 1-3: subscribe to its inbox -> done
0.127 C to masters 1-3: acquire orders for C2, 10s, ballot 0.126008 to 0.126040, waiter wC1 -> held by A1 for
        9.974; place 2 in the queue
0.129 C to masters 1-3: acquire orders for C3, 10s, ballot 0.128010 to 0.128042, waiter wC1 -> held by A1 for
        9.972; place 2 in the queue

show queues
----
  masters 1-3: 2 waiting: wB1, wC1

B dies
----

A unlocks orders
----
0.141 A to masters 1-3: release orders of A1 -> deleted
0.141 masters 1-3 to C: orders is free, and wC1 is first
0.142 A has unlocked orders
0.143 C to masters 1-3: acquire orders for C4, 10s, ballot 0.142002 to 0.142034, waiter wC1 -> granted
0.144 C has orders until 10.040, token 0.142002

# B delayed no other waiter. Now D hangs, which the masters cannot know.
D locks orders
----
0.151 D to masters 1-3: acquire orders for D1, 10s, ballot 0.150000 to 0.150032 -> held by C4 for 9.992
0.155 D to masters 1-3: subscribe to its inbox -> done
0.157 D to masters 1-3: acquire orders for D2, 10s, ballot 0.156008 to 0.156040, waiter wD1 -> held by C4 for
        9.986; place 1 in the queue
0.159 D to masters 1-3: acquire orders for D3, 10s, ballot 0.158010 to 0.158042, waiter wD1 -> held by C4 for
        9.984; place 1 in the queue

E locks orders
----
0.161 E to masters 1-3: acquire orders for E1, 10s, ballot 0.160000 to 0.160032 -> held by C4 for 9.982
0.165 E to masters 1-3: subscribe to its inbox -> done
0.167 E to masters 1-3: acquire orders for E2, 10s, ballot 0.166008 to 0.166040, waiter wE1 -> held by C4 for
        9.976; place 2 in the queue
0.169 E to masters 1-3: acquire orders for E3, 10s, ballot 0.168010 to 0.168042, waiter wE1 -> held by C4 for
        9.974; place 2 in the queue

hold everything from D to 1-3
----

hold everything from 1-3 to D
----

C unlocks orders
----
0.171 C to masters 1-3: release orders of C4, waiter wC1 leaves -> deleted
0.171 masters 1-3 to D: orders is free, and wD1 is first
0.172 C has unlocked orders

wait 2s
----
1.171 E to masters 1-3: acquire orders for E4, 10s, ballot 1.170012 to 1.170044, waiter wE1 -> granted
1.172 E has orders until 11.068, token 1.170012

who holds orders
----
at 2.180
  masters 1-3: E4 until 11.171
  A does not hold it
  C does not hold it
  D waits for it
  E holds it until 11.068, on 3 of 3, token 1.170012

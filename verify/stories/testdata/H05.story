# H05. Some masters are down, and on others the name is held.
# What could go wrong: one dead master makes a free name look held, or a held name look like a failure of the masters.
# What must hold: the error is "held" if enough masters answer and none of the possible majorities is free, and "no
# quorum" if too many masters have failed.
masters 5
----

program B without=4,5
----

program C
----

B locks orders
----
0.201 B to masters 1-3: acquire orders for B1, 10s, ballot 0.200000 to 0.200032 -> granted
0.202 B has orders until 10.098, token 0.200000

who holds orders
----
at 0.210
  masters 1-3: B1 until 10.201
  masters 4-5: free
  B holds it until 10.098, on 3 of 5, token 0.200000
  C does not hold it

# Two masters are down, and three say that the name is held. The error is "held".
masters 4-5 stop
----

C tries orders
----
0.211 C to masters 1-3: acquire orders for C1, 10s, ballot 0.210000 to 0.210032 -> held by B1 for 9.990
0.212 C cannot lock orders; the call ends after 0.002: lock "orders": held by another; 0 of 5 masters agreed,
        quorum is 3; held by "B" since 00:00:00; expires in 9.991s unless extended; master 4, master 5: read:
        master is down: connection reset
0.213 C to masters 2-3: release orders of C1 -> was not there

# Three masters are down. The error is "no quorum", regardless of the other two, to which nothing is sent.
master 3 stops
----

C tries orders
----
0.220 C cannot lock orders; the call ends after 0.000: lock "orders": no quorum of masters; 2 of 5 masters can
        grant a lock, quorum is 3; master 3, master 4, master 5: read: master is down: connection reset

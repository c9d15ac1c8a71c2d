# H23. A majority of the masters cannot be reached when a lock is to be extended.
# What could go wrong: one failed extension ends all extensions, and the lock is lost although the network recovers.
# What must hold: the extension is repeated until the validity ends.
masters 5
----

program A
----

A locks orders
----
0.101 A to masters 1-5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.102 A has orders until 9.998, token 0.100000

wait 3s
----
1.105 A to masters 1-5: subscribe to its inbox -> done

cut A from 1-3
----

wait 5s
----
3.434 A to masters 4-5: extend orders for A1 by 10s -> done
4.434 A to masters 4-5: extend orders for A1 by 10s -> done
5.434 A to masters 4-5: extend orders for A1 by 10s -> done
6.434 A to masters 4-5: extend orders for A1 by 10s -> done
7.434 A to masters 4-5: extend orders for A1 by 10s -> done

who holds orders
----
at 8.110
  masters 1-3: A1 until 10.101
  masters 4-5: A1 until 17.434
  A holds it until 9.998, on 2 of 5, token 0.100000

# A second before the end the network recovers.
join A to 1-3
----

wait 2s
----
8.153 A to masters 1-3: subscribe to its inbox -> done
8.289 A to masters 1-5: extend orders for A1 by 10s -> done

who holds orders
----
at 10.110
  masters 1-5: A1 until 18.289
  A holds it until 18.186, on 5 of 5, token 0.100000

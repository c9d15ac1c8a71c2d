# H63. One client is given three masters, another one five, of one deployment.
# What could go wrong: each gets a majority of its masters, and both hold the name.
# What must hold: the list is in the admission records. A client with another list is refused, and its error has both
# lists.
masters 5 fresh
----

program A masters=3
----
0.007 A to masters 1-3: begin a quarantine -> done: in quarantine since 0.007019, one of 3, longest TTL 30s,
        quarantine 30s

A admits
----
0.103 A to masters 1-3: admit at once -> done: admitted since 0.103003, one of 3, longest TTL 30s, quarantine 30s
0.104 A has admitted all masters

wait 1s
----

A locks orders
----
1.111 A to masters 1-3: acquire orders for A1, 10s, ballot 1.110000 to 1.110032 -> granted
1.112 A has orders until 11.008, token 1.110000

program B
----

B tries orders
----
1.220 B cannot lock orders; the call ends after 0.000: lock "orders": no quorum of masters; 0 of 5 masters can
        grant a lock, quorum is 3; master 1, master 2, master 3: lock: master list mismatch: the list of this
        client is probably wrong: it has epoch 0 and the masters [master 1 master 2 master 3 master 4 master 5],
        and its record has epoch 0 and the masters [master 1 master 2 master 3]; only this client has [master 4
        master 5]; correct the list of this client: name the masters of the record; to replace a master use
        redlock set; if the same masters have other addresses here, use the names of the record (?name=); master
        4, master 5: lock: master list mismatch: the list of this client is probably wrong: it has epoch 0 and
        the masters [master 1 master 2 master 3 master 4 master 5], and the record on master 1 has epoch 0 and
        the masters [master 1 master 2 master 3]; only this client has [master 4 master 5]; correct the list of
        this client: name the masters of the record; to replace a master use redlock set; if the same masters
        have other addresses here, use the names of the record (?name=)

who holds orders
----
at 1.230
  masters 1-3: A1 until 11.111
  masters 4-5: free
  A holds it until 11.008, on 3 of 3, token 1.110000
  B does not hold it

show B
----
  masters 1-3: blocked: master list mismatch: the list of this client is probably wrong: it has epoch 0 and the
        masters [master 1 master 2 master 3 master 4 master 5], and its record has epoch 0 and the masters
        [master 1 master 2 master 3]; only this client has [master 4 master 5]; correct the list of this client:
        name the masters of the record; to replace a master use redlock set; if the same masters have other
        addresses here, use the names of the record (?name=)
  masters 4-5: blocked: master list mismatch: the list of this client is probably wrong: it has epoch 0 and the
        masters [master 1 master 2 master 3 master 4 master 5], and the record on master 1 has epoch 0 and the
        masters [master 1 master 2 master 3]; only this client has [master 4 master 5]; correct the list of this
        client: name the masters of the record; to replace a master use redlock set; if the same masters have
        other addresses here, use the names of the record (?name=)

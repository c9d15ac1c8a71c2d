# H54. Another program has put its own data under the key of a lock.
# What could go wrong: the data is taken for a lock that is held forever, or is deleted.
# What must hold: such a master fails with an error that says so, and the data stays. A minority of such masters is
# tolerated.
masters 3
----

program A
----

master 3 has a foreign key
----

A locks orders
----
0.101 A to masters 1-2: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.101 A to master 3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> error WRONGTYPE Operation against
        a key holding the wrong kind of value
0.102 A has orders until 9.998, token 0.100000

A unlocks orders
----
0.111 A to masters 1-2: release orders of A1 -> deleted
0.111 A to master 3: release orders of A1 -> error WRONGTYPE Operation against a key holding the wrong kind of
        value
0.112 A has unlocked orders

masters 1-2 have a foreign key
----

A tries orders
----
0.121 A to masters 1-3: acquire orders for A2, 10s, ballot 0.120000 to 0.120032 -> error WRONGTYPE Operation
        against a key holding the wrong kind of value
0.122 A cannot lock orders; the call ends after 0.002: lock "orders": no quorum of masters: the keys of the name
        hold the other kind of lock, or data of another program: a name has either plain locks (Lock, TryLock,
        Do), or readers and writers (RWLock); 0 of 3 masters agreed, quorum is 2 (1 replies outstanding); the key
        "redlock:{orders}" is of another type: the name is used both by Lock and by RWLock, or this library did
        not write it; use another name or prefix, or delete it (pool: master 1: acquire: WRONGTYPE Operation
        against a key holding the wrong kind of value); the key "redlock:{orders}" is of another type: the name
        is used both by Lock and by RWLock, or this library did not write it; use another name or prefix, or
        delete it (pool: master 2: acquire: WRONGTYPE Operation against a key holding the wrong kind of value)
0.123 A to masters 1-3: release orders of A2 -> error WRONGTYPE Operation against a key holding the wrong kind of
        value

show masters
----
  masters 1-2: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s; foreign data at
        redlock:{orders}; fence of orders 0.100032
  master 3: admitted since 0.000000, one of 3, longest TTL 30s, quarantine 30s; foreign data at redlock:{orders}

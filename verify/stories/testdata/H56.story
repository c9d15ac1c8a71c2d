# H56. Masters answer with errors: no memory, no disk, no rights.
# What could go wrong: the error is taken for "held", or is not reported, so that no operator learns what to fix.
# What must hold: a minority of such masters costs nothing. If no majority is left, the error has the answer of each.
masters 5
----

program A
----

master 4 answers OOM
----

master 5 answers MISCONF
----

A locks orders
----
0.101 A to masters 1-3: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> granted
0.101 A to master 4: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> error OOM command not allowed
        when used memory > 'maxmemory'.
0.101 A to master 5: acquire orders for A1, 10s, ballot 0.100000 to 0.100032 -> error MISCONF Redis is configured
        to save RDB snapshots, but it's currently unable to persist to disk.
0.102 A has orders until 9.998, token 0.100000

A unlocks orders
----
0.111 A to masters 1-3: release orders of A1 -> deleted
0.111 A to master 4: release orders of A1 -> error OOM command not allowed when used memory > 'maxmemory'.
0.111 A to master 5: release orders of A1 -> error MISCONF Redis is configured to save RDB snapshots, but it's
        currently unable to persist to disk.
0.112 A has unlocked orders

master 3 answers NOPERM
----

A tries orders
----
0.121 A to masters 1-2: acquire orders for A2, 10s, ballot 0.120000 to 0.120032 -> granted
0.121 A to master 3: acquire orders for A2, 10s, ballot 0.120000 to 0.120032 -> error NOPERM this user has no
        permissions to run the 'evalsha' command
0.121 A to master 4: acquire orders for A2, 10s, ballot 0.120000 to 0.120032 -> error OOM command not allowed
        when used memory > 'maxmemory'.
0.121 A to master 5: acquire orders for A2, 10s, ballot 0.120000 to 0.120032 -> error MISCONF Redis is configured
        to save RDB snapshots, but it's currently unable to persist to disk.
0.122 A cannot lock orders; the call ends after 0.002: lock "orders": no quorum of masters; 2 of 5 masters
        agreed, quorum is 3; master 3: acquire: NOPERM this user has no permissions to run the 'evalsha' command;
        grant the user default the right to run evalsha: `ACL SETUSER default +evalsha`; master 4: acquire: OOM
        command not allowed when used memory > 'maxmemory'.; master 5: acquire: MISCONF Redis is configured to
        save RDB snapshots, but it's currently unable to persist to disk.
0.123 A to masters 1-2: release orders of A2 -> deleted
0.123 A to master 3: release orders of A2 -> error NOPERM this user has no permissions to run the 'evalsha'
        command
0.123 A to master 4: release orders of A2 -> error OOM command not allowed when used memory > 'maxmemory'.
0.123 A to master 5: release orders of A2 -> error MISCONF Redis is configured to save RDB snapshots, but it's
        currently unable to persist to disk.

masters 3-5 answer well
----

A tries orders
----
0.131 A to masters 1-5: acquire orders for A3, 10s, ballot 0.130000 to 0.130032 -> granted
0.132 A has orders until 10.028, token 0.130000

// Package redlockrueidis makes a [pool.Pool] from the options of rueidis clients.
//
//	masters, err := redlockrueidis.New([]rueidis.ClientOption{first, second, third}) // one for each master
//	locker, err := redlock.New(masters)
//
// The pool has connections of its own. From the options it takes the addresses, the database, the dialer or dial
// function, TLS, the credentials or AuthCredentialsFn, and the sentinels with their TLS and credentials. Timeouts are
// not taken, since those of rueidis are long for votes; pass options of package pool, such as [pool.WithTimeout].
// They apply to each master and take precedence. Other options of rueidis, such as those of caches and pipelines,
// have no meaning here.
//
// Several addresses in one ClientOption are one cluster, or the sentinels of one master, and never a list of
// independent masters. A cluster has several hash slots and needs [Buckets].
//
// AuthCredentialsFn is called for each connection, with the first address of the options as its Address. It has no
// context, so a dial that waits for it ends when it returns. A connection keeps its login; RefreshAfter is not used.
//
// A dial function makes all connections, also those to sentinels, and must speak TLS itself if TLS is wanted, as
// rueidis expects. DialCtxFn takes precedence over DialFn.
package redlockrueidis

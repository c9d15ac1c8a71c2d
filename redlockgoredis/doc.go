// Package redlockgoredis makes a [pool.Pool] from the options of a go-redis client (v9).
//
//	masters, err := redlockgoredis.New([]*redis.UniversalOptions{first, second, third}) // one for each master
//	locker, err := redlock.New(masters)
//
// The pool has connections of its own. From the options it takes the addresses, the database, the dial function, TLS,
// the credentials or their provider, and the sentinels with their credentials. Timeouts are not taken, since those of
// go-redis are long for votes; pass options of package pool, such as [pool.WithTimeout]. They apply to each master
// and take precedence. Other options of go-redis, such as OnConnect, hooks and the sizes of its pool, have no meaning
// here.
//
// A list of addresses in one UniversalOptions is one cluster, or the sentinels of one master, and never a list of
// independent masters. A cluster has several hash slots and needs [Buckets].
//
// A provider is called for each connection. A connection keeps its login: of a StreamingCredentialsProvider the
// present credentials are used, and later ones by the next connection. CredentialsProvider has no context, so a dial
// that waits for it ends when it returns.
//
// If Dialer is set, as it is in the options that [redis.Client.Options] returns, it makes all connections, also those
// to sentinels, and must speak TLS itself if TLS is wanted, as go-redis expects.
package redlockgoredis

// Package redlockgoredis makes a [pool.Pool] from the options of a go-redis client (v9).
//
//	masters, err := redlockgoredis.New([]*redis.UniversalOptions{first, second, third}) // one for each master
//	locker, err := redlock.New(masters)
//
// The pool makes its own connections. From the options it takes the addresses, the database, the dial function, TLS,
// the credentials or their provider, and the sentinels with their credentials. It does not take the timeouts, since
// those of go-redis are too long for votes; pass options of package pool, such as [pool.WithTimeout]. Options of
// package pool apply to each master and take precedence. Other options of go-redis, such as OnConnect, hooks and the
// sizes of its pool, have no effect.
//
// A list of addresses in one UniversalOptions is one cluster, or the sentinels of one master, and never a list of
// independent masters. A cluster needs [Buckets], because its keys are in different hash slots.
//
// A provider is called for each connection, and a connection keeps its login. From a StreamingCredentialsProvider, a
// new connection takes the present credentials; later credentials are used by later connections. CredentialsProvider
// has no context, so a call of it cannot be cancelled.
//
// If Dialer is set, as in the options that [redis.Client.Options] returns, it makes all connections, also those to
// sentinels. As in go-redis, Dialer must then do the TLS handshake itself if TLS is used.
package redlockgoredis

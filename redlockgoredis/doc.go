// Package redlockgoredis creates a [pool.Pool] from the options of go-redis clients (v9).
//
//	masters, err := redlockgoredis.New([]*redis.UniversalOptions{first, second, third}) // one for each master
//	locker, err := redlock.New(masters)
//
// The pool makes its own connections. It uses these options of go-redis: the addresses, the database, the dial
// function, TLS, the credentials or their provider, and the sentinels with their credentials. It does not use the
// timeouts of go-redis, which are too long for votes; pass options of package pool, such as [pool.WithTimeout]. Options
// of package pool apply to each master and take precedence. Other options of go-redis, such as OnConnect, hooks and the
// sizes of its pool, have no effect.
//
// Two or more addresses in one UniversalOptions are the nodes of one cluster, or the sentinels of one master; they are
// never independent masters. A cluster needs [Buckets], because its keys are in different hash slots.
//
// A credentials provider is called for each connection, and a connection keeps its login. A new connection uses the
// current credentials of a StreamingCredentialsProvider; an open connection ignores later ones. CredentialsProvider
// takes no context, so its calls cannot be cancelled.
//
// If Dialer is set, as in the options that [redis.Client.Options] returns, Dialer makes all connections, also those to
// sentinels. In that case, as in go-redis, Dialer must also do the TLS handshake if TLS is used.
package redlockgoredis

// Package redlockvalkey creates a [pool.Pool] from the options of valkey-go clients.
//
//	masters, err := redlockvalkey.New([]valkey.ClientOption{first, second, third}) // one for each master
//	locker, err := redlock.New(masters)
//
// The pool makes its own connections. It uses these options of valkey-go: the addresses, the database, the dialer or
// dial function, TLS, the credentials or AuthCredentialsFn, and the sentinels with their TLS and credentials. It does
// not use the timeouts of valkey-go, which are too long for votes; pass options of package pool, such as
// [pool.WithTimeout]. Options of package pool apply to each master and take precedence. Other options of valkey-go,
// such as those of caches and pipelines, have no effect.
//
// Two or more addresses in one ClientOption are the nodes of one cluster, or the sentinels of one master; they are
// never independent masters. A cluster needs [Buckets], because its keys are in different hash slots.
//
// AuthCredentialsFn is called for each connection, with the first address of the options as its Address. The function
// takes no context, so its calls cannot be cancelled. A connection keeps its login; RefreshAfter is not used.
//
// A dial function makes all connections, also those to sentinels. As in valkey-go, the dial function must also do the
// TLS handshake if TLS is used. DialCtxFn takes precedence over DialFn.
package redlockvalkey

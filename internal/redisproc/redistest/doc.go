// Package redistest starts what a test on real servers needs, and stops it when the test ends: servers, also with TLS,
// with a clock that can be set, as sentinels or as a cluster, and listeners that answer as a server does not. A server
// in a network namespace or below another program is a [redisproc.Config].
package redistest

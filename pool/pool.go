package pool

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Errors, to be tested with errors.Is. Their identities are part of the API; the texts are not. ErrInvalid and
// ErrClosed are the errors of package redlock with these names.
var (
	ErrInvalid = fault.ErrInvalid // a master or an option is invalid; nothing has been dialled
	ErrClosed  = fault.ErrClosed  // the Pool, or a Locker, is closed
	ErrDown    = fault.ErrDown    // the master is not connected, or the connection ended before the reply came
	ErrRefused = fault.ErrRefused // the server answers, but is not fit to hold locks; it also matches ErrDown
	ErrTimeout = fault.ErrTimeout // any timeout: dialling, handshake, an overdue reply, a blocked write
)

// A Pool holds the connections to N masters. [New] and [Open] make a Pool. A Locker of package redlock uses a Pool;
// several Lockers may share one. All methods are safe for concurrent use.
type Pool struct{ handle }

// handle gives the other packages of this module the connections of a Pool; see [transport.Of].
type handle = transport.Handle

// Open calls [New] with masters given as URLs; see [URL].
//
// All clients must use the same masters. A client with another list of masters acquires no lock, and gets an error that
// shows both lists. To replace a master, use "redlock set"; see docs/change.md.
//
// A URL, except that of a master behind Sentinel, must lead to one server at any time. Two servers behind one name, by
// DNS or by a virtual IP address, are not safe: each may vote as the same master for different clients, and two clients
// may hold one lock. All clients should also use the same max TTL: a client with a shorter one is not protected if a
// majority of the masters loses its data at the same time. See "Limits" in package redlock.
func Open(urls []string, opts ...Option) (*Pool, error) {
	return newPool(transport.Open(urls, options(opts)...))
}

// New connects to the masters in the background. New does not block, and succeeds even if no master is up. If a master
// or an option is invalid, New dials nothing and returns an error that matches [ErrInvalid]. The caller must close the
// Pool. The masters must follow the rules in [Open].
func New(masters []Master, opts ...Option) (*Pool, error) {
	list := make([]transport.Master, len(masters))
	for i, m := range masters {
		list[i] = m.master
		list[i].Name = m.Name
	}
	return newPool(transport.New(list, options(opts)...))
}

func newPool(t *transport.Transport, err error) (*Pool, error) {
	if err != nil {
		return nil, err
	}
	return &Pool{t.Handle()}, nil
}

// OpenBuckets makes a Pool with [New] for each bucket of the clusters among the masters, for [redlock.NewSharded],
// which distributes names over the Pools. In each Pool a cluster is one master: the node that owns the bucket's hash
// slot. Masters that are not clusters are in every Pool, with one connection for each.
//
// All clusters must have the same number of buckets. OpenBuckets does not block. An error matches [ErrInvalid]. The
// caller must close each Pool.
//
// [redlock.NewSharded]: https://pkg.go.dev/github.com/redlock-go/redlock/redlock#NewSharded
func OpenBuckets(urls []string, opts ...Option) ([]*Pool, error) {
	list, err := transport.OpenBuckets(urls, options(opts)...)
	if err != nil {
		return nil, err
	}
	pools := make([]*Pool, len(list))
	for i, t := range list {
		pools[i] = &Pool{t.Handle()}
	}
	return pools, nil
}

// N returns the number of masters, including those that a change of the configuration has added or retired. Masters are
// numbered from 0 and keep their numbers.
func (p *Pool) N() int { return transport.Of(p).N() }

// Addr returns the name of master i; see [Master]. The name contains no credentials.
func (p *Pool) Addr(i int) string { return transport.Of(p).Addr(i) }

// Close closes every connection, waits until every goroutine of the Pool has ended, even when called again, and returns
// nil. First close the Lockers that use the Pool: after Close, their calls fail with an error that matches [ErrClosed].
func (p *Pool) Close() error { return transport.Of(p).Close() }

// A Master is one server and the way to reach it. [URL] and [FromRedisPool] make a Master.
type Master struct {
	// Name identifies the master in its admission record, in errors and in logs. It is host:port, or the path of a
	// socket, unless ?name= in the URL or the caller sets another name. The name must not contain credentials. All
	// clients must use the same name for a master, and the name must not change: a client whose masters have names other
	// than those in the admission records acquires no lock. Set a name if clients reach the same master at different
	// addresses. To replace the server behind a name, use "redlock set" with a new name.
	Name string

	master transport.Master
}

func wrap(m transport.Master) Master { return Master{m.Name, m} }

// URL describes a master by
//
//	redis://[[user]:password@]host[:port][/database][?name=name][&guard=off]      also valkey://
//	rediss://...                                          the same over TLS; also valkeys://
//	unix://[[user]:password@]/path/to/socket[?db=database][&name=name][&guard=off]
//	redis+sentinel://[[user]:password@]host[:port],host[:port],.../service[?db=database][&allow=two-holders][&name=name]
//	redis+cluster://[[user]:password@]host[:port],host[:port],...?buckets=n[&allow=two-holders][&name=name]
//
// The name identifies the master in admission records and errors; see [Master]. Clients that reach one master at
// different addresses must set the same name. To replace a master, use "redlock set" (docs/change.md); changing
// only the URLs is not enough. Unless a name is given, a master behind Sentinel is named service@ followed by the
// sorted addresses of the sentinels, and a cluster is named cluster@ followed by those of the given nodes. Set a name
// if these addresses may change.
//
// guard=off, in the URLs of all masters, is the same as redlock.WithoutRestartGuard.
//
// The last two schemes may also begin with valkey, rediss or valkeys. redis+sentinel describes the master that the
// sentinels monitor under the name service. The hosts are those of the sentinels, with the default port 26379; user and
// password are those of the master. redis+cluster describes a cluster for [OpenBuckets]. The hosts are some or all of
// the nodes. A master behind Sentinel or in a cluster votes only if a failover cannot lead to two holders; see
// docs/guide.md.
//
// The default host is localhost, and the default port 6379. A user without a colon and a password is used as the
// password, as by redis-cli. Special characters in user and password must be percent-encoded. [New] returns an error if
// rawurl is invalid.
func URL(rawurl string, opts ...Option) Master { return wrap(transport.URL(rawurl, options(opts)...)) }

// FromRedisPool describes a master by an existing pool. Connections are made by DialContext of p or, if that is nil, by
// Dial, and are used by this package alone. Other fields of p are ignored, and a Locker logs those that are set. name
// is the Name of the [Master]: the host:port, if other clients use its URL. New refuses a URL as name. Options about
// TLS, credentials, database and dialer are refused. Dial has no context and must not block forever, because Close
// waits for it.
func FromRedisPool(name string, p *redis.Pool, opts ...Option) Master {
	return wrap(transport.FromRedisPool(name, p, options(opts)...))
}

// An Option sets how masters are reached. An Option of [New] or [Open] applies to all masters. An Option of [URL] or
// [FromRedisPool] applies to one master and takes precedence. New returns [ErrInvalid] for invalid options.
type Option interface{ option }

type option = transport.Option

func options(opts []Option) []transport.Option {
	list := []transport.Option{transport.WithScripts(scripts.All...)}
	for _, o := range opts {
		list = append(list, o)
	}
	return list
}

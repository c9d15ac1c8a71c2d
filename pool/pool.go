package pool

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
)

// Errors, to be tested with errors.Is. Their identities are part of the API; the texts are not.
var (
	ErrInvalid = transport.ErrInvalid // a master or an option is invalid; nothing has been dialled
	ErrClosed  = transport.ErrClosed  // the Pool is closed
	ErrDown    = transport.ErrDown    // the master is not connected, or the connection ended before the reply came
	ErrRefused = transport.ErrRefused // the server answers, but is not fit to hold locks; it also matches ErrDown
	ErrTimeout = transport.ErrTimeout // any timeout: dialling, handshake, an overdue reply, a blocked write
)

// A Pool holds the connections to N masters. It is made by [New] or [Open] and used by a Locker of package redlock;
// several Lockers may share it. All methods are safe for concurrent use.
type Pool struct{ transport *transport.Transport }

// Open calls [New] with masters given as URLs; see [URL].
//
// All clients must use the same masters. A client with another list acquires no lock, and gets an error that shows both
// lists. To replace a master use "redlock set", see docs/operations.md.
//
// A URL, except that of a master behind Sentinel, must lead to one server at any time. Two servers behind one name,
// by DNS or by a virtual IP address, are not safe: each may vote as the same master for different clients, and two
// clients may hold one lock. If a majority of the masters loses its data together, a client with a shorter max TTL
// than the other clients is not protected either; see "What is not guaranteed" in package redlock.
func Open(urls []string, opts ...Option) (*Pool, error) {
	return newPool(transport.Open(urls, options(opts)...))
}

// New connects to the masters in the background. It does not block, and succeeds even if no master is up. An error
// matches [ErrInvalid]; nothing has been dialled then. The Pool must be closed. The rules in [Open] for the masters
// of all clients apply here, too.
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
	return &Pool{t}, nil
}

// OpenBuckets makes a Pool with [New] for each bucket of the clusters among the masters, for [redlock.NewSharded],
// which distributes names over the Pools. In each Pool a cluster is one master: the node that owns the bucket's hash
// slot. Masters that are not clusters are in every Pool, with one connection for each.
//
// All clusters must have the same number of buckets. An error matches [ErrInvalid]; nothing has been dialled then. The
// caller must close each Pool. OpenBuckets does not block.
//
// [redlock.NewSharded]: https://pkg.go.dev/github.com/redlock-go/redlock/redlock#NewSharded
func OpenBuckets(urls []string, opts ...Option) ([]*Pool, error) {
	list, err := transport.OpenBuckets(urls, options(opts)...)
	if err != nil {
		return nil, err
	}
	pools := make([]*Pool, len(list))
	for i, t := range list {
		pools[i] = &Pool{t}
	}
	return pools, nil
}

// N returns the number of masters, including those that a change of the configuration has added or retired: a master
// keeps its number, from 0.
func (p *Pool) N() int { return p.transport.N() }

// Addr returns the name of master i; see [Master]. It contains no credentials.
func (p *Pool) Addr(i int) string { return p.transport.Addr(i) }

// Close closes every connection. It returns nil when every goroutine has ended, also when called again. Close the
// Lockers that use the Pool first, because their later calls fail with an error that matches [ErrClosed].
func (p *Pool) Close() error { return p.transport.Close() }

// Transport returns the connections themselves, for the other packages of this module.
func (p *Pool) Transport() *transport.Transport { return p.transport }

// A Master is one server, and how to reach it; made by [URL] or [FromRedisPool].
type Master struct {
	// Name identifies the master in its admission record, in errors and in logs. It is host:port, or the path of a
	// socket, unless ?name= in the URL or the caller sets another name; it contains no credentials. All clients must use
	// the same name for a master: a client whose masters have names other than those in the admission records acquires
	// no lock. So the name must not change. Set a name if clients reach the same master at different addresses. To
	// replace the server behind a name, use "redlock set" with a new name.
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
// The name identifies the master in admission records and errors, see [Master]; clients that reach one master at
// different addresses must set the same name. To replace a master by another one, use "redlock set"
// (docs/operations.md); to change only the URLs is not enough. Unless a name is given, a master behind Sentinel is
// named service@ followed by the sorted addresses of the sentinels, and a cluster is named cluster@ followed by those
// of the given nodes. Set a name if these addresses may change.
//
// guard=off, in the URLs of all masters, is the same as redlock.WithoutRestartGuard.
//
// The last two schemes may also begin with valkey, rediss or valkeys. redis+sentinel is the master that the sentinels
// monitor under the name service; the hosts are those of the sentinels, with port 26379 unless given, and user and
// password are those of the master. redis+cluster is a cluster, of which the hosts are some of the nodes, for
// [OpenBuckets]. Such masters vote only if no failover can lead to two holders: see docs/guide.md.
//
// The port is 6379 unless given, the host localhost. A user without a colon is taken as a password, as redis-cli does.
// Special characters in user and password percent-encoded. [New] returns an error if rawurl is invalid.
func URL(rawurl string, opts ...Option) Master { return wrap(transport.URL(rawurl, options(opts)...)) }

// FromRedisPool describes a master by an existing pool, whose DialContext, or else Dial, makes connections that then
// belong to this package alone. Nothing else of p is used, and a Locker logs those settings of p that have no effect.
// name is the Name of the [Master], and must not contain credentials. Options about TLS, credentials, database and
// dialer are refused. Dial, which has no context, must not block forever, because Close waits for it.
func FromRedisPool(name string, p *redis.Pool, opts ...Option) Master {
	return wrap(transport.FromRedisPool(name, p, options(opts)...))
}

// An Option sets how masters are reached. An Option of [New] or [Open] applies to all masters. An Option of [URL] or
// [FromRedisPool] applies to one master and takes precedence. New returns [ErrInvalid] for invalid options.
type Option func(*transport.Config) error

func options(opts []Option) []transport.Option {
	list := []transport.Option{transport.WithScripts(scripts.All...)}
	for _, o := range opts {
		list = append(list, o)
	}
	return list
}

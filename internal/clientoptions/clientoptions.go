package clientoptions

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// Options are what the options of a client say. All fields but Package and Addrs may be zero.
type Options struct {
	Package   string   // the package that maps the options, for errors
	Addrs     []string // of the master, of its sentinels, or of nodes of the cluster
	Unix      bool     // whether the address is the path of a socket, as one that begins with "/" always is
	MasterSet string   // the name of the master for its sentinels, if it is behind sentinels
	Cluster   bool     // whether a single address is that of a cluster; several always are

	// Dial makes all connections, and also does the TLS handshake. If Dial is nil, Dialer makes them.
	Dial             func(ctx context.Context, network, addr string) (net.Conn, error)
	Dialer           *net.Dialer
	TLS, SentinelTLS *tls.Config

	// Credentials take precedence over User and Password.
	Credentials                    func(context.Context) (user, password string, err error)
	User, Password                 string
	SentinelUser, SentinelPassword string

	Database    int
	ReplicaOnly bool
}

// New calls [pool.New] for n masters, which master returns.
func New(n int, master func(i int) (pool.Master, error)) (*pool.Pool, error) {
	masters := make([]pool.Master, n)
	for i := range masters {
		var err error
		if masters[i], err = master(i); err != nil {
			return nil, err
		}
	}
	return pool.New(masters)
}

// Master returns the master at the address, or behind the sentinels.
func (o *Options) Master(opts []pool.Option) (pool.Master, error) {
	u, own, err := o.reach()
	switch {
	case err != nil:
		return pool.Master{}, err
	case o.MasterSet != "":
		return o.failover(u, own, opts)
	case o.Cluster || len(o.Addrs) > 1:
		return pool.Master{}, Invalid(o.Package, "%q: the addresses of a cluster: use Buckets; for independent masters, use "+
			"separate options", o.Addrs)
	case o.Addr().Network() == "unix":
		if u.Scheme == "rediss" {
			return pool.Master{}, Invalid(o.Package, "%s: TLS is not supported over a Unix socket", o.Addrs[0])
		}
		u = url.URL{Scheme: "unix", Path: o.Addrs[0]}
	}
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// failover returns the master behind the sentinels.
func (o *Options) failover(u url.URL, own, opts []pool.Option) (pool.Master, error) {
	if (o.SentinelTLS == nil) != (o.TLS == nil) || u.Scheme == "redis" && o.SentinelTLS != o.TLS {
		return pool.Master{}, Invalid(o.Package, "%s: use TLS for the master and its sentinels, or for neither; "+
			"with a dial function, use the same TLSConfig for both", o.MasterSet)
	}
	if u.Scheme == "rediss" {
		own = append(own, pool.WithSentinelTLS(o.SentinelTLS))
	}
	if o.SentinelPassword != "" {
		own = append(own, pool.WithSentinelCredentials(o.SentinelUser, o.SentinelPassword))
	}
	u.Scheme += "+sentinel"
	u.Path = "/" + o.MasterSet
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// Buckets returns a Pool for each of the n buckets of the cluster.
func (o *Options) Buckets(n int, opts []pool.Option) ([]*pool.Pool, error) {
	u, own, err := o.reach()
	switch {
	case err != nil:
		return nil, err
	case o.MasterSet != "":
		return nil, Invalid(o.Package, "%q: Buckets needs the addresses of a cluster, not those of sentinels", o.Addrs)
	case o.Database != 0:
		return nil, Invalid(o.Package, "%q: a cluster has only database 0", o.Addrs)
	}
	u.Scheme += "+cluster"
	u.RawQuery = "buckets=" + strconv.Itoa(n)
	return pool.OpenBuckets([]string{u.String()}, append(own, opts...)...)
}

// reach returns a URL with the scheme "redis" or "rediss" and all addresses, and the pool options for dialling, TLS,
// the login and the database. It refuses options without an address, and those for replicas.
func (o *Options) reach() (u url.URL, own []pool.Option, err error) {
	switch {
	case o.ReplicaOnly:
		return u, nil, Invalid(o.Package, "%q: ReplicaOnly must not be set: a replica has no vote", o.Addrs)
	case len(o.Addrs) == 0 || slices.Contains(o.Addrs, ""):
		return u, nil, Invalid(o.Package, "%q: an address is missing: give the address of the master", o.Addrs)
	}
	u = url.URL{Scheme: "redis", Host: strings.Join(o.Addrs, ",")}
	dial := o.Dial
	if dial == nil && o.TLS != nil {
		u.Scheme = "rediss"
		own = append(own, pool.WithTLSConfig(o.TLS))
	}
	if dial == nil && o.Dialer != nil {
		dial = o.Dialer.DialContext
	}
	if dial != nil {
		own = append(own, pool.WithDialer(dial), transport.WithProcessSlots())
	}
	switch {
	case o.Credentials != nil:
		own = append(own, pool.WithCredentialsProvider(o.Credentials))
	case o.Password != "":
		own = append(own, pool.WithCredentials(o.User, o.Password))
	}
	return u, append(own, pool.WithDatabase(o.Database)), nil
}

// Addr returns the first address. It must not be called without one.
func (o *Options) Addr() net.Addr {
	if o.Unix || strings.HasPrefix(o.Addrs[0], "/") {
		return address{"unix", o.Addrs[0]}
	}
	return address{"tcp", o.Addrs[0]}
}

// An address implements net.Addr.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// Invalid returns an error of a package that maps options. It matches [pool.ErrInvalid].
func Invalid(from, format string, args ...any) error {
	return fmt.Errorf("%w: "+from+": "+format, append([]any{pool.ErrInvalid}, args...)...)
}

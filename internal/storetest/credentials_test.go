//go:build linux

package storetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// The password of the user changes, behind Sentinel and in a cluster. Each new connection to a master or to a node of
// the cluster logs in with the password that the provider returns at that time. Connections to the sentinels do not log
// in, because the sentinels have no such user.
func TestCredentialsFromAProvider(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (url string, servers []*server){
		"sentinel": func(t *testing.T) (string, []*server) {
			s := newService(t, loopback, loopback, stops...)
			return s.url(""), s.servers
		},
		"cluster": func(t *testing.T) (string, []*server) {
			c := newCluster(t)
			return c.url("buckets=2"), c.nodes
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, servers := start(t)
			allow := func(password string) {
				for _, s := range servers {
					s.must("ACL", "SETUSER", "app", "on", "resetpass", ">"+password, "~*", "&*", "+@all")
					s.must("CLIENT", "KILL", "USER", "app")
				}
			}
			var password atomic.Value
			provide := pool.WithCredentialsProvider(func(context.Context) (user, secret string, err error) {
				return "app", password.Load().(string), nil
			})
			password.Store("first")
			allow("first")
			var pools []*transport.Transport
			var err error
			if name == "cluster" {
				pools, err = transport.OpenBuckets([]string{url}, provide)
			} else {
				var p *transport.Transport
				p, err = transport.Open([]string{url}, provide)
				pools = append(pools, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			up := func(p *transport.Transport, after uint64) (session uint64) {
				var last transport.Event
				defer func() {
					if t.Failed() {
						t.Logf("the last event is %+v", last)
					}
				}()
				eventually(t, "the master is up with a new session", func() bool {
					p.Watch(func(e transport.Event) { last = e })()
					return last.Session > after
				})
				return last.Session
			}
			before := make([]uint64, len(pools))
			for i, p := range pools {
				t.Cleanup(func() { _ = p.Close() })
				before[i] = up(p, 0)
			}
			password.Store("second")
			allow("second")
			for i, p := range pools {
				up(p, before[i])
			}
		})
	}
}

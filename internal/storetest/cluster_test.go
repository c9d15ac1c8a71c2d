//go:build linux

package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

const six = "buckets=6"

// H140: a client acquires its first locks on a cluster. A second client with another number of buckets gets an error,
// and so does a client that is configured with a node of the cluster as a plain master.
func TestLockOnCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := run(t, "a", loopback, true, c.url(six))
	holdsAfter(t, time.Now(), a)
	locker, end := c.groups("buckets=7")
	defer end()
	for _, name := range names {
		for { // repeat until the Locker has read the records
			_, err := locker.TryLock(t.Context(), name, redlock.WithWaitLimit(time.Second))
			if err == nil {
				t.Fatalf("%s was locked with another number of buckets", name)
			}
			if errors.Is(err, redlock.ErrMasterList) {
				break
			}
			if strings.HasSuffix(bucketOf(locker, name), "{7}") {
				break // the first client does not use bucket 7, so this bucket may have no record that shows the error
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	plain := must.Get(transport.Open([]string{c.nodes[0].URL()}))(t)
	t.Cleanup(func() { _ = plain.Close() })
	refused := make(chan error, 100)
	t.Cleanup(plain.Watch(func(e transport.Event) { refused <- e.Err }))
	for err := range refused {
		if errors.Is(err, fault.ErrRefused) && strings.Contains(err.Error(), "redis+cluster://") {
			break
		}
	}
}

// groups returns a Locker for all buckets, and a function that closes the Locker and its pools.
func (c *cluster) groups(parameters string) (g *redlock.Locker, end func()) {
	c.t.Helper()
	pools, err := pool.OpenBuckets([]string{c.url(parameters)})
	if err != nil {
		c.t.Fatal(err)
	}
	if g, err = redlock.NewSharded(pools); err != nil {
		c.t.Fatal(err)
	}
	return g, func() {
		_ = g.Close()
		for _, p := range pools {
			_ = p.Close()
		}
	}
}

// used starts two clients that acquire locks on the cluster, one on each side.
func (c *cluster) used(left, right side) (a, b *process) {
	c.t.Helper()
	return pair(c.t, left, right, c.url(six))
}

// tagOf returns the hash tag, such as {3}, of the bucket to which a name belongs. It closes its Locker immediately,
// because a Locker with only the cluster would interfere with clients that use other masters as well.
func (c *cluster) tagOf(name string) string {
	g, end := c.groups(six)
	defer end()
	addr := bucketOf(g, name)
	return addr[strings.LastIndex(addr, "{"):]
}

// bucketOf returns the address of a master of the bucket to which a name belongs.
func bucketOf(l *redlock.Locker, name string) string {
	for _, m := range admin.Of(l).Masters() {
		if m.Shard == sharding.Pick(name, len(client.SetOf(l).Clients)) {
			return m.Addr
		}
	}
	return ""
}

// oneShardWaited checks that no lock had two holders at the same time, that some lock never had no holder for longer
// than 5 s, and that another lock had no holder for 20 s or more.
func oneShardWaited(t *testing.T, a, b *process) {
	t.Helper()
	v := judged(t, a, b)
	if v.shortest() > 5*time.Second {
		t.Errorf("every lock was without a holder for at least %v, want at most 5s for some lock: "+
			"the other shards were affected", v.shortest())
	}
	if v.longest() < 20*time.Second {
		t.Errorf("no lock was without a holder for longer than %v, want at least 20s: a promoted node did not wait",
			v.longest())
	}
}

// H141: the master of one shard fails. The buckets of this shard wait for the max TTL, and the other buckets
// continue.
func TestFailedShard(t *testing.T) {
	for name, trouble := range map[string]func(c *cluster, old, replica *server, tag string){
		"it is killed and comes back": func(c *cluster, old, replica *server, tag string) {
			old.Kill()
			c.has(replica, tag)
			old.Restart()
		},
		"it is frozen until another has its place": func(c *cluster, old, replica *server, tag string) {
			old.Pause()
			c.has(replica, tag)
			old.Resume()
		},
		"a manual failover promotes the replica, and the old master is promoted again": func(
			c *cluster, old, replica *server, tag string,
		) {
			replica.Do("CLUSTER", "FAILOVER", "FORCE") // without the consent of the master, so its last writes are lost
			c.has(replica, tag)
			redistest.Eventually(c.t, "the old master is in sync as a replica", func() bool {
				said, _ := replica.do("INFO", "replication")
				return strings.Contains(said, "state=online")
			})
			time.Sleep(5 * time.Second)               // shorter changes may go unnoticed: see package redlock
			old.Do("CLUSTER", "FAILOVER", "TAKEOVER") // without the consent of the master or of the other shards
			c.has(old, tag)
		},
		"the replica takes its place while it is frozen": func(c *cluster, old, replica *server, tag string) {
			old.Pause()
			replica.Do("CLUSTER", "FAILOVER", "TAKEOVER")
			c.has(replica, tag)
			time.Sleep(2 * time.Second) // when the server resumes, it executes the commands that arrived while it was frozen
			old.Resume()
		},
		"all its data is deleted": func(_ *cluster, old, _ *server, _ string) { old.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			needsLong(t)
			c := newCluster(t)
			a, b := c.used(loopback, loopback)
			tag := c.tagOf(names[0])
			old, _ := c.owner(tag)
			trouble(c, old, c.replicaOf(old), tag)
			holdsAfter(t, time.Now().Add(2*time.Second), a, b)
			oneShardWaited(t, a, b)
		})
	}
}

// H141: one master is partitioned away together with a client, and its replica on the other side is promoted. The
// locks of this master have only one holder at a time. Clients on the side of the other masters continue to use the
// locks of the other shards.
func TestClusterPartition(t *testing.T) {
	needsLong(t)
	left, right, cut := apart(t)
	c := newCluster(t, left, right, right, right, right, right)
	if info, _ := c.nodes[0].do("INFO", "replication"); !strings.Contains(info, "role:master") {
		t.Fatalf("the node to be partitioned away is not a master: %s", info)
	}
	a, b := c.used(left, right)
	cut(true)
	redistest.Eventually(t, "a replica is promoted", func() bool {
		said, _ := c.nodes[1].do("CLUSTER", "NODES")
		masters := 0
		for line := range strings.Lines(said) {
			if strings.Contains(line, "master") && !strings.Contains(line, "fail") {
				masters++
			}
		}
		return masters == 3 && strings.Contains(said, "master,fail")
	})
	time.Sleep(10 * time.Second) // if a lock gets two holders, it happens now or in the quarantine below
	cut(false)
	holdsAfter(t, time.Now().Add(2*time.Second), a, b)
	oneShardWaited(t, a, b)
}

// H142: all slots of one shard are moved to another shard under load.
func TestReshardUnderLoad(t *testing.T) {
	needsLong(t)
	c := newCluster(t)
	a, b := c.used(loopback, loopback)
	from, _ := c.owner(c.tagOf(names[0]))
	to := c.nodes[slices.IndexFunc(c.nodes, func(n *server) bool { return n != from })]
	c.tool("reshard", from.Addr(), "--cluster-from", from.Text("CLUSTER", "MYID"),
		"--cluster-to", to.Text("CLUSTER", "MYID"), "--cluster-slots", "5461")
	holdsAfter(t, time.Now().Add(2*time.Second), a, b)
	v := judged(t, a, b)
	if v.longest() < 20*time.Second {
		t.Errorf("no lock was without a holder for longer than %v, want at least 20s: a bucket that moved did not wait",
			v.longest())
	}
}

// H143: the migration of a bucket's slot is started, all keys but the admission record are moved, and the migration is
// cancelled. The old owner has lost the locks in these keys, although its incarnation and admission record have not
// changed.
func TestCancelledSlotMigration(t *testing.T) {
	needsLong(t)
	c := newCluster(t)
	a, b := c.used(loopback, loopback)
	from, slot := c.owner(c.tagOf(names[0]))
	to := c.nodes[slices.IndexFunc(c.nodes, func(n *server) bool { return n != from })]
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Text("CLUSTER", "MYID"))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Text("CLUSTER", "MYID"))
	keys := must.Get(from.do("CLUSTER", "GETKEYSINSLOT", slot, "1000"))(t)
	for _, key := range strings.Split(keys, "\n") {
		if !strings.HasSuffix(key, ":admission") {
			_, _ = from.do("MIGRATE", to.at.ip, to.Port(), key, "0", "1000") // fails if the key has expired
		}
	}
	time.Sleep(4 * time.Second) // longer than the heartbeat interval, so the clients notice the migration
	from.Do("CLUSTER", "SETSLOT", slot, "STABLE")
	to.Do("CLUSTER", "SETSLOT", slot, "STABLE")
	holdsAfter(t, time.Now().Add(2*time.Second), a, b)
	v := judged(t, a, b)
	if gap := v.gaps[names[0]]; gap < 25*time.Second {
		t.Errorf("%s was without a holder for only %v, want at least 25s: its bucket did not wait", names[0], gap)
	}
}

// H144: a cluster is used together with four plain masters. The failover of a shard does not interrupt any lock.
func TestClusterBesidePlainMasters(t *testing.T) {
	needsLong(t)
	c := newCluster(t)
	var urls []string
	for _, s := range redistest.Test(t, 4, redisproc.Config{}) {
		urls = append(urls, s.URL())
	}
	urls = append(urls, c.url(six))
	a, b := pair(t, loopback, loopback, urls...)
	old, _ := c.owner(c.tagOf(names[0]))
	old.Kill()
	time.Sleep(8 * time.Second)
	old.Restart()
	holdsAfter(t, time.Now().Add(2*time.Second), a, b)
	v := judged(t, a, b)
	if v.longest() > 5*time.Second {
		t.Errorf("a lock was without a holder for %v, want at most 5s", v.longest())
	}
}

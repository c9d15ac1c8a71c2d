//go:build linux

package storetest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// A cluster has three masters, each with a replica.
type cluster struct {
	t     *testing.T
	nodes []*server
}

// newCluster creates a cluster with redis-cli, with the settings that make a partitioned master reject writes. Node i
// is on side at[i]; without at, all six nodes are on the loopback interface. redis-cli chooses masters on all sides,
// and does not place a replica on the side of its master.
func newCluster(t *testing.T, at ...side) *cluster {
	t.Helper()
	if len(at) == 0 {
		at = slices.Repeat([]side{loopback}, 6)
	}
	redistest.NeedCluster(t)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("needs redis-cli (apt-get install redis-tools) to make the cluster")
	}
	c := &cluster{t: t}
	var addrs []string
	for _, place := range at {
		bus := must.Get(redisproc.FreePort())(t)
		n := newServer(t, place, "cluster-enabled yes", "cluster-node-timeout 10000", fmt.Sprintf("cluster-port %d", bus),
			"min-replicas-max-lag 3", "cluster-allow-replica-migration no")
		c.nodes, addrs = append(c.nodes, n), append(addrs, n.Addr())
	}
	c.tool(append(append([]string{"create"}, addrs...), "--cluster-replicas", "1")...)
	for _, n := range c.nodes {
		redistest.Eventually(t, "the cluster is complete, and each master has its replica", func() bool {
			info, _ := n.do("CLUSTER", "INFO")
			nodes, _ := n.do("CLUSTER", "NODES")
			said, _ := n.do("INFO", "replication")
			return strings.Contains(info, "cluster_state:ok") && strings.Count(nodes, "slave") == 3 &&
				(strings.Contains(said, "master_link_status:up") || strings.Contains(said, "state=online"))
		})
	}
	// These settings come last, because on a busy machine nodes may seem dead while the cluster is being created.
	for _, n := range c.nodes {
		for setting, value := range map[string]string{"min-replicas-to-write": "1", "cluster-node-timeout": "5000"} {
			n.Do("CONFIG", "SET", setting, value)
		}
	}
	return c
}

// tool runs redis-cli --cluster with these arguments.
func (c *cluster) tool(args ...string) {
	c.t.Helper()
	args = append(append([]string{"--cluster"}, args...), "--cluster-yes")
	if out, err := c.nodes[0].at.command("redis-cli", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("the command redis-cli %v failed: %v: %.2000s", args, err, out)
	}
}

func (c *cluster) url(parameters string) string {
	return fmt.Sprintf("redis+cluster://%s,%s,%s?%s", c.nodes[0].Addr(), c.nodes[1].Addr(), c.nodes[5].Addr(), parameters)
}

// owner returns the master that owns the slot of a hash tag, and the number of the slot.
func (c *cluster) owner(tag string) (n *server, slot string) {
	c.t.Helper()
	for _, n := range c.nodes {
		if _, err := n.do("TTL", tag); err == nil {
			info, _ := n.do("INFO", "replication")
			if strings.Contains(info, "role:master") {
				return n, fmt.Sprint(n.Do("CLUSTER", "KEYSLOT", tag))
			}
		}
	}
	c.t.Fatalf("no node owns the slot of %s", tag)
	return nil, ""
}

// replicaOf returns the replica of a master.
func (c *cluster) replicaOf(master *server) *server {
	c.t.Helper()
	for _, n := range c.nodes {
		if said, _ := n.do("INFO", "replication"); strings.Contains(said, fmt.Sprintf("master_port:%s\r", master.Port())) {
			return n
		}
	}
	c.t.Fatalf("%s has no replica", master.Addr())
	return nil
}

// has waits until node n owns the slot of a hash tag.
func (c *cluster) has(n *server, tag string) {
	c.t.Helper()
	redistest.Eventually(c.t, n.Addr()+" owns the slot of "+tag, func() bool {
		_, err := n.do("TTL", tag)
		return err == nil
	})
}

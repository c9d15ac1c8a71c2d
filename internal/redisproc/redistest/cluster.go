package redistest

import (
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// Cluster starts a cluster of three masters without replicas and returns their addresses. If secure is set, it
// returns their addresses for TLS, and a configuration that trusts their certificate.
func Cluster(t testing.TB, cfg redisproc.Config, secure bool) (addrs []string, trust *tls.Config) {
	t.Helper()
	NeedCluster(t)
	if secure {
		dir := Certificates(t)
		trust = trusting(t, dir)
		cfg.Args = slices.Concat(TLSArgs(dir, "no"), []string{"--tls-cluster", "yes"}, cfg.Args)
	}
	const n = 3
	nodes := make([]*node, n)
	for i := range nodes {
		nodes[i] = startNode(t, cfg, secure)
		args := []any{"ADDSLOTS"}
		for slot := i * slots / n; slot < (i+1)*slots/n; slot++ {
			args = append(args, slot)
		}
		nodes[i].cluster(args...)
		nodes[i].cluster("SET-CONFIG-EPOCH", i+1)
		if i > 0 {
			nodes[0].cluster("MEET", "127.0.0.1", nodes[i].port, nodes[i].bus)
		}
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", nodes[i].port))
	}
	for _, node := range nodes {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			info := node.cluster("INFO")
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(n)) {
				break
			}
			if time.Now().After(end) {
				t.Fatal(info)
			}
		}
	}
	return addrs, trust
}

// A node is one server of a cluster.
type node struct {
	t         testing.TB
	conn      redis.Conn
	port, bus string
}

func startNode(t testing.TB, cfg redisproc.Config, secure bool) *node {
	t.Helper()
	var ports [2]string
	for i := range ports {
		port, err := redisproc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = strconv.Itoa(port)
	}
	args := []string{"--cluster-enabled", "yes", "--cluster-port", ports[0]}
	if secure {
		args = append(args, "--tls-port", ports[1])
	}
	cfg.Args = append(args, cfg.Args...)
	s := Test(t, 1, cfg)[0]
	if !secure {
		_, ports[1], _ = net.SplitHostPort(s.Addr()) // cannot fail: the address has a port
	}
	return &node{t, Dial(t, s), ports[1], ports[0]}
}

// cluster sends a CLUSTER command.
func (n *node) cluster(args ...any) string {
	n.t.Helper()
	reply, err := redis.String(n.conn.Do("CLUSTER", args...))
	if err != nil {
		n.t.Fatalf("CLUSTER %.60v: %v", args, err)
	}
	return reply
}

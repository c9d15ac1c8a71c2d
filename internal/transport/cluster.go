package transport

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/cluster"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// MaxBuckets is the largest number of buckets of a cluster.
const MaxBuckets = 300

// A Bucket identifies the bucket of a cluster that a Transport serves. The zero Bucket is for a Transport without a
// cluster.
type Bucket struct{ Number, Of int } // Number is from 1 to Of

// Tag returns the hash tag of the bucket, such as "{17}". The tag follows the prefix in every key of the bucket, so
// that all these keys are in one hash slot. For the zero Bucket, Tag returns "".
func (b Bucket) Tag() string {
	if b.Of == 0 {
		return ""
	}
	return "{" + strconv.Itoa(b.Number) + "}"
}

// Bucket returns the bucket that t serves; see [OpenBuckets].
func (t *Transport) Bucket() Bucket { return t.bucket }

// Buckets returns the number of buckets of a master that is a cluster (redis+cluster://), and 0 for any other master.
func (m Master) Buckets() int { return m.buckets }

// OpenBuckets makes a Transport with [New] for each bucket of the clusters among the masters. In each Transport a
// cluster is one master: the node that owns the bucket's hash slot. Masters that are not clusters are in every
// Transport, with one connection for each. If no master is a cluster, OpenBuckets makes one Transport.
func OpenBuckets(urls []string, opts ...Option) ([]*Transport, error) {
	masters, buckets := make([]Master, len(urls)), 0
	for i, u := range urls {
		m := URL(u)
		if masters[i] = m; m.buckets == 0 || m.err != nil {
			continue
		}
		if buckets != 0 && buckets != m.buckets {
			return nil, fault.Invalid("one cluster has %d buckets, another %d: the counts must be equal", buckets, m.buckets)
		}
		buckets = m.buckets
	}
	if buckets == 0 {
		t, err := New(masters, opts...)
		return []*Transport{t}, err
	}
	pools, shared := make([]*Transport, buckets), new(beats)
	for i := range pools {
		list := slices.Clone(masters)
		for j := range list {
			if list[j].buckets > 0 {
				list[j].bucket = i + 1
				list[j].Name += Bucket{i + 1, buckets}.Tag()
			}
		}
		p, err := build(list, shared, opts)
		if err != nil {
			for _, opened := range pools[:i] {
				_ = opened.Close() // nothing has been sent yet
			}
			return nil, err
		}
		p.bucket = Bucket{i + 1, buckets}
		pools[i] = p
	}
	return pools, nil
}

// parseCluster sets the fields of a cluster with nodes at hosts from its URL.
func parseCluster(m *Master, u *url.URL, hosts string) (err error) {
	m.authorityFunc = inCluster
	m.buckets, err = strconv.Atoi(u.Query().Get("buckets"))
	if err != nil || m.buckets < 1 || m.buckets > MaxBuckets || strings.TrimPrefix(u.Path, "/") != "" {
		return fmt.Errorf("the number of buckets, from 1 to %d, is missing; the form is %s", MaxBuckets,
			forms["redis+cluster"].text)
	}
	return m.parseHosts(hosts, "6379")
}

// A clusterNode is the node that owns the hash slot of a bucket. It implements authority.
type clusterNode struct{ tag string }

// inCluster makes cfg refer to the node that owns the slot of m's bucket.
func inCluster(m *Master, cfg *Config) (authority, error) {
	if m.bucket == 0 {
		return nil, fault.Invalid("master %q is a cluster: OpenBuckets makes a pool for each of its buckets", m.Name)
	}
	seeds := make([]wire.Target, len(m.nodes))
	for i, addr := range m.nodes {
		seeds[i] = cfg.Target
		seeds[i].Network, seeds[i].Addr = "tcp", addr
		if cfg.credentials != nil { // all seeds are queried concurrently, but a Provider makes one call at a time
			seeds[i].Provider = wire.NewProvider(cfg.credentials)
		}
	}
	n := clusterNode{Bucket{m.bucket, m.buckets}.Tag()}
	cfg.FindFunc = func(ctx context.Context) (string, error) { return cluster.Owner(ctx, seeds, n.tag) }
	return n, nil
}

// follow implements authority. A node that no longer owns the slot says so itself, by MOVED.
func (n clusterNode) follow(*master) {}

func (n clusterNode) rule(s *Stopping) *Promotion { return &s.rule }

func (n clusterNode) settings(s *Stopping) []wire.Question {
	return []wire.Question{configGet("cluster-node-timeout", func(settings map[string]string, _ error) {
		s.rule.After = time.Duration(Number(settings["cluster-node-timeout"])) * time.Millisecond
	})}
}

func (n clusterNode) place(s *Stopping) []wire.Question {
	return cluster.SlotQuestions(n.tag, func(replicas int) { s.rule.Replicas = replicas })
}

func (n clusterNode) heartbeat(digest string) *frame.Call {
	return heartbeat.ClusterCall(n.tag, digest)
}

func (n clusterNode) digest(fields map[string]string) string { return fields[heartbeat.Digest] }

func (n clusterNode) clustered() bool { return true }

func (n clusterNode) finder() *sentinel.Finder { return nil }

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
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
// Transport, with one connection for each.
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
		if _, _, err := settings(masters, opts); err != nil {
			return nil, err
		}
		return nil, fault.Invalid("no master is a cluster: use a URL such as redis+cluster://host:port?buckets=64, or Open")
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

// parseCluster sets the fields of a cluster with nodes at hosts from the path and the number of buckets in its URL.
func (m *Master) parseCluster(path, buckets, hosts string, form urlForm) (err error) {
	m.buckets, err = strconv.Atoi(buckets)
	if err != nil || m.buckets < 1 || m.buckets > MaxBuckets || strings.TrimPrefix(path, "/") != "" {
		return fmt.Errorf("the number of buckets, from 1 to %d, is missing; the form is %s", MaxBuckets, form.text)
	}
	return m.parseHosts(hosts, "6379")
}

// inCluster makes cfg refer to the node that owns the bucket's slot.
func (cfg *Config) inCluster(m *Master) {
	seeds := make([]wire.Target, len(m.nodes))
	for i, addr := range m.nodes {
		seeds[i] = cfg.Target
		seeds[i].Network, seeds[i].Addr = "tcp", addr
		if cfg.credentials != nil { // all seeds are queried concurrently, but a Provider makes one call at a time
			seeds[i].Provider = wire.NewProvider(cfg.credentials)
		}
	}
	cfg.tag = Bucket{m.bucket, m.buckets}.Tag()
	cfg.FindFunc = func(ctx context.Context) (string, error) { return owner(ctx, seeds, cfg.tag) }
	cfg.failover = &failover{twoHold: cfg.TwoHolders}
}

// owner queries all nodes concurrently for the owner of tag's slot, and returns the first answer.
func owner(ctx context.Context, nodes []wire.Target, tag string) (addr string, err error) {
	var causes []string
	for _, a := range wire.Poll(ctx, nodes, 1, func(ctx context.Context, t *wire.Target) (string, error) {
		addr := t.Addr
		findOwner := func(reply any) error {
			refusal, _ := reply.(redis.Error)
			if moved := movedTo(refusal, t.Addr); moved != "" {
				addr = moved
				return nil
			}
			return wire.Refusal(reply)
		}
		err := t.Query(ctx, wire.Question{Op: "find slot", Command: []string{"EXISTS", tag}, TakeFunc: findOwner})
		return addr, err
	}) {
		if a.Err == nil {
			return a.Value, nil
		}
		causes = append(causes, fmt.Sprintf("%s: %v", a.Addr, a.Err))
	}
	return "", fmt.Errorf("no node of the cluster returned the owner of the slot of %s: %s", tag,
		strings.Join(causes, "; "))
}

// movedTo returns the address in a MOVED reply, and "" for any other reply. A node that does not know the host of the
// owner omits the host. The client must then use the host of asked, the address of that node.
func movedTo(reply redis.Error, asked string) string {
	words := strings.Fields(string(reply))
	if len(words) != 3 || words[0] != "MOVED" {
		return ""
	}
	host, port, err := net.SplitHostPort(words[2])
	if err != nil {
		return ""
	}
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}

// slotQuestions returns questions that read whether a node owns the slot of tag, whether the slot is being moved, and
// the number of replicas.
func (s *stopping) slotQuestions(tag string) []wire.Question {
	return []wire.Question{
		{Op: "find slot", Command: []string{"EXISTS", tag}, TakeFunc: wire.Refusal},
		{Op: "cluster nodes", Command: []string{"CLUSTER", "NODES"}, TakeFunc: func(reply any) error {
			text, err := redis.String(reply, nil)
			if err != nil {
				return fmt.Errorf("CLUSTER NODES: %w", err)
			}
			var moving bool
			if s.rule.replicas, moving, err = readNodes(text, slotOf(tag)); moving {
				return errMoving
			}
			return err
		}},
	}
}

// errMoving is the reason why a master has no vote in a bucket whose slot is being moved: the locks in the slot migrate
// one by one.
var errMoving = errors.New("its hash slot is being migrated to another node: the lock keys move there one by one")

// leaving reports whether err means that the slot is being moved, or has moved. The locks in the slot may then be
// lost, even if the same node owns the slot again afterwards.
func leaving(err error) bool {
	return errors.Is(err, errMoving) ||
		fault.IsCode(err, "MOVED") || fault.IsCode(err, "ASK") || fault.IsCode(err, "TRYAGAIN")
}

// readNodes parses the reply of CLUSTER NODES. It returns the number of replicas of the queried node, connected or not,
// and whether the slot is being moved from or to that node.
func readNodes(text string, slot int) (replicas int, moving bool, err error) {
	self := ""
	masters := map[string]int{}
	mark := "[" + strconv.Itoa(slot) + "-"
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			return 0, false, fmt.Errorf("CLUSTER NODES: a line has %d fields, want at least 8", len(words))
		}
		masters[words[3]]++
		if strings.Contains(words[2], "myself") {
			self = words[0]
			moving = slices.ContainsFunc(words[8:], func(w string) bool { return strings.HasPrefix(w, mark) })
		}
	}
	if self == "" {
		return 0, false, errors.New("CLUSTER NODES: no line has the flag myself")
	}
	return masters[self], moving, nil
}

// slotOf returns the hash slot of a tag such as "{17}": CRC-16 (XMODEM) of the text in the braces, modulo 16384, as the
// Redis Cluster specification defines it.
func slotOf(tag string) int {
	crc := uint16(0)
	for _, b := range []byte(strings.Trim(tag, "{}")) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}

package transport

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A sharedNode is a cluster node that has the slots of several buckets.
type sharedNode struct {
	t     *testing.T
	conn  redis.Conn
	on    []*Transport // one for each bucket on the node; the first sends the heartbeats
	other []*Transport // one for each bucket on the other nodes
}

func newSharedNode(t *testing.T) *sharedNode {
	t.Helper()
	addrs, _ := redistest.Cluster(t, redisproc.Config{}, false)
	of := openCluster(t, addrs, 24, WithHeartbeat(50*time.Millisecond))
	redistest.Eventually(t, "one connection to each node sends the heartbeats", func() bool {
		return senders(of) == len(addrs)
	})
	conn := must.Get(redis.Dial("tcp", addrs[0]))(t)
	t.Cleanup(func() { _ = conn.Close() })
	n := &sharedNode{t: t, conn: conn}
	for _, p := range of {
		switch s := p.master(0).state.Load().sess; {
		case s.addr != addrs[0]:
			n.other = append(n.other, p)
		case senders([]*Transport{p}) == 1:
			n.on = slices.Insert(n.on, 0, p)
		default:
			n.on = append(n.on, p)
		}
	}
	if len(n.on) < 3 || len(n.other) < 3 {
		t.Fatalf("%d buckets are on the node, %d are not", len(n.on), len(n.other))
	}
	return n
}

func (n *sharedNode) do(command string, args ...any) string {
	n.t.Helper()
	text, err := redis.String(n.conn.Do(command, args...))
	if err != nil {
		n.t.Fatalf("the command %s %v failed: %v", command, args, err)
	}
	return text
}

// sessions returns the session number of each transport, or 0 for a transport that is down.
func sessions(of []*Transport) (list []uint64) {
	for _, p := range of {
		list = append(list, state(p, 0).Session)
	}
	return list
}

// stay fails the test unless each transport reports another heartbeat and still has the session with its number in
// want.
func (n *sharedNode) stay(of []*Transport, want []uint64) {
	n.t.Helper()
	for i, p := range of {
		before := state(p, 0).Info.Time
		redistest.Eventually(n.t, "a heartbeat", func() bool {
			return state(p, 0).Info.Time > before || state(p, 0).Err != nil
		})
		if event := state(p, 0); event.Session != want[i] {
			n.t.Errorf("%s: the session is %d (%v), want %d", p.Addr(0), event.Session, event.Err, want[i])
		}
	}
}

// H143: the buckets of a cluster that are on the same node share heartbeats.
func TestSharedHeartbeats(t *testing.T) {
	n := newSharedNode(t)
	for _, part := range []struct {
		name string
		f    func(t *testing.T, n *sharedNode)
	}{
		{"another session sends them", anotherSessionSendsThem}, {"without the script", withoutTheScript},
		{"a slot moves", showsThatASlotMoves}, {"the node is no longer fit", isJudgedByAll},
	} {
		if n.t = t; !t.Run(part.name, func(t *testing.T) { n.t = t; part.f(t, n) }) {
			return
		}
	}
}

// A slot begins to move while all clients are idle. Another bucket sends the heartbeats, which report the move, and
// only the bucket of this slot loses its vote.
func showsThatASlotMoves(t *testing.T, n *sharedNode) {
	t.Helper()
	moving := n.on[len(n.on)-1]
	rest := append(slices.Clone(n.on[:len(n.on)-1]), n.other...)
	before, id := sessions(rest), ""
	for line := range strings.Lines(n.do("CLUSTER", "NODES")) {
		if !strings.Contains(line, "myself") {
			id = strings.Fields(line)[0]
		}
	}
	slot := must.Get(redis.Int(n.conn.Do("CLUSTER", "KEYSLOT", moving.Bucket().Tag())))(t)
	n.do("CLUSTER", "SETSLOT", slot, "MIGRATING", id)
	redistest.Eventually(t, "the bucket is down", func() bool { return fault.Moves(state(moving, 0).Err) })
	n.stay(rest, before)
	n.do("CLUSTER", "SETSLOT", slot, "STABLE")
	waitUp(t, moving)
	if state(moving, 0).Info.Moves == 0 {
		t.Error("Moves is 0 after the move was cancelled")
	}
	n.do("CLUSTER", "SETSLOT", slot, "NODE", id) // the slot has moved, and this node answers MOVED
	redistest.Eventually(t, "the bucket leaves the node", func() bool {
		event := state(moving, 0)
		return event.Err == nil && event.Info.RunID != state(n.on[0], 0).Info.RunID || event.Err != nil
	})
	n.stay(rest, before)
}

// If a heartbeat shows that a node is no longer fit to vote, all buckets on the node lose their vote.
func isJudgedByAll(t *testing.T, n *sharedNode) {
	t.Helper()
	before := sessions(n.other)
	n.do("CONFIG", "SET", "maxmemory", "100mb")
	n.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	for _, p := range n.on[:len(n.on)-1] { // except the bucket whose slot has moved
		if err := waitDown(t, p, 0, fault.ErrRefused); !strings.Contains(err.Error(), "allkeys-lru") {
			t.Error(err)
		}
	}
	n.stay(n.other, before)
}

// If the connection that sends the heartbeats ends, another connection sends them, and no other session ends.
func anotherSessionSendsThem(t *testing.T, n *sharedNode) {
	t.Helper()
	rest := slices.Clone(n.on[1:])
	before := sessions(rest)
	must.Do(t, n.on[0].Close())
	n.on = rest
	n.stay(rest, before)
	redistest.Eventually(t, "another connection sends the heartbeats", func() bool { return senders(rest) == 1 })
}

// If a user has no right to run scripts, each bucket reads INFO and CLUSTER NODES in each heartbeat.
func withoutTheScript(t *testing.T, n *sharedNode) {
	t.Helper()
	before := sessions(n.on)
	n.do("ACL", "SETUSER", "default", "-evalsha")
	defer n.do("ACL", "SETUSER", "default", "+evalsha")
	n.stay(n.on, before)
	asked := func() (calls int) {
		_, rest, _ := strings.Cut(n.do("INFO", "commandstats"), "cmdstat_info:calls=")
		count, _, _ := strings.Cut(rest, ",")
		calls, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		return calls
	}
	const rounds = 3
	first := asked()
	for range rounds {
		n.stay(n.on, before)
	}
	if calls := asked() - first; calls > 10*rounds*len(n.on) {
		t.Errorf("there were %d calls of INFO in %d heartbeats of %d buckets", calls, rounds, len(n.on))
	}
}

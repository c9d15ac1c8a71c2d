package transport

import (
	"context"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A fakeNode is a fake cluster node. At heartbeat briefMove a slot begins to move, and the move is cancelled
// immediately. From heartbeat lastMove on, the slot is moving.
type fakeNode struct {
	*fake
	briefMove, lastMove int                  // heartbeat numbers
	beats               int                  // number of heartbeats so far
	conns               map[string]io.Writer // by hash tag: the connection that last sent EXISTS for the tag
	broken              io.Writer            // commands over this connection do not arrive
	reset               io.Writer            // this connection ends at the next command
	owner               string               // address of another node that now has the slots; "" if this node has them
}

// begin creates the fake server.
func (n *fakeNode) begin(runID string) {
	n.fake, n.conns = newFake(runID), map[string]io.Writer{}
	n.extra, n.fake.on = "cluster_enabled:1\r\n", n.on
}

// openNode opens the buckets of a cluster with one node.
func openNode(t *testing.T, buckets int, n *fakeNode) []*Transport {
	t.Helper()
	n.begin("a1")
	return openNodes(t, buckets, n.dial)
}

// openNodes opens the buckets of a cluster to which dial connects.
func openNodes(
	t *testing.T, buckets int, dial func(ctx context.Context, network, addr string) (net.Conn, error),
) []*Transport {
	t.Helper()
	return openBuckets(t, "n1:7000", buckets, WithDialer(dial))
}

// on implements fake.on.
func (n *fakeNode) on(w io.Writer, cmd []string) (handled bool, err error) {
	slots, digest := "0-16383", "d0"
	n.mu.Lock()
	defer n.mu.Unlock()
	switch w {
	case n.broken:
		return true, nil
	case n.reset:
		return true, io.ErrClosedPipe
	}
	beat := len(cmd) > 3 && cmd[1] == heartbeat.Script.SHA
	if beat {
		n.beats++
	}
	if cmd[0] == "EXISTS" {
		n.conns[cmd[1]] = w
	}
	if n.beats >= n.lastMove || beat && n.beats == n.briefMove {
		slots, digest = slots+" [9842->-b]", "d1" // the slot of {1}
	}
	reply := ":0\r\n"
	switch {
	case n.owner != "" && (beat || cmd[0] == "EXISTS"):
		reply = "-MOVED 1 " + n.owner + "\r\n"
	case beat:
		words := []string{n.runID, noID, "-1", "master", "0", "0", "noeviction", "0", "0", "0", "1700000000000000", digest}
		if slices.Contains(cmd[4:], digest) {
			words[0], words[1], words[2] = heartbeat.Unchanged, heartbeat.Unchanged, heartbeat.Unchanged
		}
		reply = bulk(strings.Join(words, " "))
	case cmd[0] == "CLUSTER":
		reply = bulk("a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected " + slots + "\n")
	case cmd[0] != "EXISTS":
		return false, nil
	}
	_, err = io.WriteString(w, reply)
	return true, err
}

// H143: a slot begins to move. The move is cancelled before the client queries the node about the slot, and then the
// slot begins to move again. The client must notice the second move.
func TestSlotThatMovesAgainIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{briefMove: 10, lastMove: 12} // the client queries the slot at heartbeat 11
		of := openNode(t, 1, node)
		p := of[0]
		settle(20 * DefaultHeartbeat)
		if event := state(p, 0); !fault.Moves(event.Err) {
			t.Errorf("after %d heartbeats the bucket still votes: %+v", node.beats, event)
		}
	})
}

// H150: a connection breaks silently, as if a firewall had dropped its state, while other connections to the same node
// work. The broken connection is replaced although no call is made.
func TestBrokenConnectionIsReplacedBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buckets = 5
		node := &fakeNode{lastMove: math.MaxInt}
		of := openNode(t, buckets, node)
		settle(10 * DefaultHeartbeat)
		for i := range of {
			before := sessions(of)
			before[i]++
			node.set(func() { node.broken = node.conns[Bucket{i + 1, buckets}.Tag()] })
			settle(2 * buckets * DefaultHeartbeat)
			if now := sessions(of); !slices.Equal(now, before) {
				t.Errorf("after the connection of bucket %d broke, the sessions are %v, want %v", i+1, now, before)
			}
		}
	})
}

// H150: a connection ends just when its session must send the heartbeat for another session. The other session still
// gets a heartbeat in time.
func TestHeartbeatOfEndedSessionIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buckets = 2
		node := &fakeNode{lastMove: math.MaxInt}
		of := openNode(t, buckets, node)
		settle(10*DefaultHeartbeat + time.Millisecond)
		longest := make([]time.Duration, buckets)
		for i, p := range of {
			last := time.Now()
			defer p.Watch(func(event Event) {
				longest[i], last = max(longest[i], time.Since(last)), time.Now()
				if event.Err != nil {
					last = last.Add(time.Hour) // ignore the gap of the session that ended
				}
			})()
		}
		for i := range 2 * buckets { // twice for each bucket, since only every other reset hits the sender of the heartbeats
			node.set(func() { node.reset = node.conns[Bucket{i/2 + 1, buckets}.Tag()] })
			settle(10 * DefaultHeartbeat)
		}
		for i := range of {
			if most := DefaultHeartbeat + of[i].Timeout(0); longest[i] > most {
				t.Errorf("bucket %d got no heartbeat for %v, which is longer than %v", i+1, longest[i], most)
			}
		}
	})
}

// H151: after its slot has moved, a bucket subscribes on the node that now has the slot. A script considers a waiter
// dead if its message reaches no connection to the node that runs the script. If the queried node does not know of the
// move yet, the subscription is made on the node that had the slot, and moves to the node with the slot later.
func TestSubscriptionFollowsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := map[string]*fakeNode{}
		for id, addr := range map[string]string{"a0": "n1:7000", "a1": "n2:7000", "a2": "n3:7000"} {
			nodes[addr] = &fakeNode{lastMove: math.MaxInt}
			nodes[addr].begin(id)
		}
		asked, first, second := nodes["n1:7000"], nodes["n2:7000"], nodes["n3:7000"]
		names := func(owner string) { asked.set(func() { asked.owner = owner }) }
		names("n2:7000")
		p := openNodes(t, 1, func(ctx context.Context, network, addr string) (net.Conn, error) {
			return nodes[addr].dial(ctx, network, addr)
		})[0]
		sub := p.Subscribe("inbox", newEar())
		defer sub.Close()
		settle(time.Second)
		if first.subscribers() != 1 {
			t.Fatal("there is no subscription on the node with the slot")
		}
		first.set(func() { first.owner = "n3:7000" })
		names("n3:7000")
		end := time.Now().Add(time.Minute)
		for state(p, 0).Info.RunID != "a2" && time.Now().Before(end) {
			settle(time.Millisecond)
		}
		names("n2:7000") // the connection for calls already uses the new node
		for first.subscribers() == 0 && time.Now().Before(end) {
			settle(time.Millisecond)
		}
		if time.Now().After(end) {
			t.Fatal("the subscription was not made on the node that had the slot")
		}
		names("n3:7000")
		settle(3 * DefaultHeartbeat)
		if second.subscribers() != 1 || sub.Confirmed() != 1 {
			t.Error("there is no subscription on the node that now has the slot")
		}
	})
}

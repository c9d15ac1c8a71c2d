package transport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A fakeNode is a node of a cluster. A slot begins to move at one heartbeat, is at rest right after it, and begins to
// move once more at a later heartbeat.
type fakeNode struct {
	*fake
	first, again int // these heartbeats
	beats        int // so far
}

// on implements fake.on.
func (n *fakeNode) on(w io.Writer, cmd []string) (handled bool, err error) {
	slots, digest := "0-16383", "d0"
	n.mu.Lock()
	defer n.mu.Unlock()
	beat := len(cmd) > 3 && cmd[1] == scripts.Heartbeat.SHA
	if beat {
		n.beats++
	}
	if n.beats >= n.again || beat && n.beats == n.first {
		slots, digest = fmt.Sprintf("%s [%d->-b]", slots, slotOf("{1}")), "d1"
	}
	reply := ":0\r\n"
	switch {
	case beat:
		words := []string{n.runID, noID, "-1", "master", "0", "0", "noeviction", "1700000000000000", digest}
		if slices.Contains(cmd[4:], digest) {
			words[0], words[1], words[2] = scripts.Unchanged, scripts.Unchanged, scripts.Unchanged
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

// A slot begins to move, which is cancelled before the node is asked about it, and begins to move once more.
func TestSlotThatMovesAgainIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{fake: newFake("a1"), first: 10, again: 12} // it is asked about the slot by heartbeat 11
		node.extra = "cluster_enabled:1\r\n"
		node.fake.on = node.on
		of, err := OpenBuckets([]string{"redis+cluster://n1:7000?buckets=1&allow=two-holders"}, WithDialer(node.dial))
		if err != nil {
			t.Fatal(err)
		}
		p := of[0]
		settle(20 * DefaultHeartbeat)
		if e := state(p, 0); !leaving(e.Err) {
			t.Errorf("%d heartbeats, and the bucket still votes: %+v", node.beats, e)
		}
		_ = p.Close()
		synctest.Wait()
		settle(time.Second)
	})
}

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// slotOf returns the same slots as CLUSTER KEYSLOT.
func TestSlotsOfTags(t *testing.T) {
	for tag, slot := range map[string]int{"{foo}": 12182, "{1}": 9842, "{123456789}": 12739} {
		if got := slotOf(tag); got != slot {
			t.Errorf("the slot of %s is %d, want %d", tag, got, slot)
		}
	}
	var shards [3]int
	for i := range 64 {
		shards[slotOf(fmt.Sprintf("{%d}", i+1))*3/16384]++
	}
	if slices.Min(shards[:]) < 14 {
		t.Errorf("the bucket counts of the three shards are %v, want at least 14 each", shards)
	}
}

func TestMovedTo(t *testing.T) {
	for reply, want := range map[redis.Error]string{
		"MOVED 9842 10.0.0.2:7001": "10.0.0.2:7001", "MOVED 1 :7001": "n1:7001", "MOVED 1 ?:7001": "n1:7001",
		"MOVED 1 [::1]:7001": "[::1]:7001", "MOVED 1": "", "ASK 1 10.0.0.2:7001": "", "CLUSTERDOWN": "", "": "",
	} {
		if got := movedTo(reply, "n1:7000"); got != want {
			t.Errorf("%q redirects to %q, want %q", reply, got, want)
		}
	}
}

// readNodes returns the number of replicas, connected or not, and reports whether the slot is being moved.
func TestReadNodes(t *testing.T) {
	nodes := func(slots string) string {
		return "aa n1:7000@1 myself,master - 0 1 1 connected 0-9999 " + slots + "\n" +
			"bb n2:7000@1 slave aa 0 1 1 disconnected\n" +
			"cc n3:7000@1 slave,fail aa 1 1 1 disconnected\n" +
			"dd n4:7000@1 slave ee 0 1 1 connected\n" +
			"ee n5:7000@1 master - 0 1 1 connected 10000-16383\n"
	}
	for slots, moving := range map[string]bool{"": false, "[9842->-ee]": true, "[9842-<-ee]": true, "[98->-ee]": false} {
		replicas, got, err := readNodes(nodes(slots), 9842)
		if replicas != 2 || got != moving || err != nil {
			t.Errorf("%q: readNodes returned %d replicas, moving %v, error %v", slots, replicas, got, err)
		}
	}
	for _, text := range []string{"", "aa n1:7000@1 master\n", strings.ReplaceAll(nodes(""), "myself,", "")} {
		if _, _, err := readNodes(text, 1); err == nil {
			t.Errorf("readNodes accepted %q", text)
		}
	}
}

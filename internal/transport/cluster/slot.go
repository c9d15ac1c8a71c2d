package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Slot is the hash slot of a tag such as "{17}". The node that owns the slot is the master. A Slot implements
// transport.Authority.
type Slot struct {
	Tag   string
	Nodes []wire.Target // some or all of the nodes of the cluster
}

// Find queries all nodes concurrently for the owner of the slot, and returns the first answer.
func (s *Slot) Find(ctx context.Context) (addr string, err error) {
	var texts []string
	answers := wire.Poll(ctx, s.Nodes, 1, func(ctx context.Context, t *wire.Target) (string, error) {
		addr := t.Addr
		findOwner := func(reply any) error {
			refusal, _ := reply.(redis.Error)
			if moved := movedTo(refusal, t.Addr); moved != "" {
				addr = moved
				return nil
			}
			return wire.Refusal(reply)
		}
		err := t.Query(ctx, wire.Question{Op: "find slot", Command: []string{"EXISTS", s.Tag}, TakeFunc: findOwner})
		return addr, err
	})
	for _, a := range answers {
		if a.Err == nil {
			return a.Value, nil
		}
		texts = append(texts, fmt.Sprintf("%s: %v", a.Addr, a.Err))
	}
	return "", fault.New(fmt.Sprintf("no node of the cluster returned the owner of the slot of %s: %s", s.Tag,
		strings.Join(texts, "; ")), wire.SharedCause(answers))
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

// Follow implements transport.Authority. A node that no longer owns the slot says so itself, by MOVED.
func (s *Slot) Follow(context.Context, func(addr string)) {}

// Reported implements transport.Authority.
func (s *Slot) Reported() (replicas int, after time.Duration, ok bool) { return 0, 0, false }

// InCluster implements transport.Authority.
func (s *Slot) InCluster() bool { return true }

// RuleQuestions returns a question that reads cluster-node-timeout.
func (s *Slot) RuleQuestions(afterFunc func(time.Duration)) []wire.Question {
	const setting = "cluster-node-timeout"
	return []wire.Question{wire.ConfigGet(setting, func(settings map[string]string, _ error) {
		ms, _ := strconv.Atoi(settings[setting]) // 0 if it cannot be read, which no rule allows
		afterFunc(time.Duration(ms) * time.Millisecond)
	})}
}

// PlaceQuestions returns questions that read whether the node owns the slot, whether the slot is being moved, and how
// many replicas the node has.
func (s *Slot) PlaceQuestions(replicasFunc func(n int)) []wire.Question {
	return []wire.Question{
		{Op: "find slot", Command: []string{"EXISTS", s.Tag}, TakeFunc: wire.Refusal},
		{Op: "cluster nodes", Command: []string{"CLUSTER", "NODES"}, TakeFunc: func(reply any) error {
			text, err := redis.String(reply, nil)
			if err != nil {
				return fmt.Errorf("CLUSTER NODES: %w", err)
			}
			replicas, moving, err := readNodes(text, slotOf(s.Tag))
			if replicasFunc(replicas); moving {
				return fault.ErrMoving
			}
			return err
		}},
	}
}

// Heartbeat implements transport.Authority.
func (s *Slot) Heartbeat(digest string) *frame.Call { return heartbeat.ClusterCall(s.Tag, digest) }

// Digest implements transport.Authority.
func (s *Slot) Digest(fields map[string]string) string { return fields[heartbeat.Digest] }

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

// slotOf returns the number of the slot of a tag: CRC-16 (XMODEM) of the text in the braces, modulo 16384, as the
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

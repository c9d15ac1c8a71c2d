package cluster

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

// Owner queries all nodes concurrently for the owner of tag's slot, and returns the first answer.
func Owner(ctx context.Context, nodes []wire.Target, tag string) (addr string, err error) {
	var causes []string
	shared := fault.Unknown // the cause of all errors, if it is the same
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
		switch cause := fault.CauseOf(a.Err); {
		case len(causes) == 0:
			shared = cause
		case cause != shared:
			shared = fault.Unknown
		}
		causes = append(causes, fmt.Sprintf("%s: %v", a.Addr, a.Err))
	}
	return "", fault.New(fmt.Sprintf("no node of the cluster returned the owner of the slot of %s: %s", tag,
		strings.Join(causes, "; ")), shared)
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

// SlotQuestions returns questions that read whether a node owns the slot of tag, and whether the slot is being moved.
// They call replicasFunc with the number of replicas of the node.
func SlotQuestions(tag string, replicasFunc func(n int)) []wire.Question {
	return []wire.Question{
		{Op: "find slot", Command: []string{"EXISTS", tag}, TakeFunc: wire.Refusal},
		{Op: "cluster nodes", Command: []string{"CLUSTER", "NODES"}, TakeFunc: func(reply any) error {
			text, err := redis.String(reply, nil)
			if err != nil {
				return fmt.Errorf("CLUSTER NODES: %w", err)
			}
			replicas, moving, err := readNodes(text, Slot(tag))
			if replicasFunc(replicas); moving {
				return fault.ErrMoving
			}
			return err
		}},
	}
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

// Slot returns the hash slot of a tag such as "{17}": CRC-16 (XMODEM) of the text in the braces, modulo 16384, as the
// Redis Cluster specification defines it.
func Slot(tag string) int {
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

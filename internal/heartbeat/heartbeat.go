package heartbeat

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/frame"
)

// replyFields lists the INFO fields whose values are the first words of the reply, in order.
var replyFields = []string{"run_id", "master_replid2", "second_repl_offset", "role", "connected_slaves",
	"maxmemory", "maxmemory_policy", "aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled",
	"server_time_usec"}

// noField is the value of a field that the server does not report, and of the digest in a call if none is known.
const noField = "?"

//go:embed heartbeat.lua
var text string

// Script is the heartbeat script. The SHA is a constant, because computing SHA-1 panics if FIPS 140 forbids it.
var Script = &frame.Script{Name: "heartbeat", SHA: "556e8d295258964c6107550fb97daee4eaa620b2", Text: text}

var (
	call             = frame.New(Script)
	callWithReplicas = frame.New(Script).With("replicas")
)

// Digest is the name of the field in the reply of a cluster node that changes when the identity of the node, its
// slots, or the number of its replicas change.
const Digest = "digest"

// Unchanged is the value of run_id, master_replid2 and second_repl_offset if the digest in the reply equals that in the
// call.
const Unchanged = "="

// ClusterCall returns the call of a heartbeat to the node that owns the slot of tag. The reply contains the field
// [Digest] and the state of each replica. digest is the digest in the last reply, or "".
func ClusterCall(tag, digest string) *frame.Call {
	return frame.New(Script, tag).With(cmp.Or(digest, noField))
}

// Call returns the call of a heartbeat. If replicas is true, the reply contains the state of each replica.
func Call(replicas bool) *frame.Call {
	if replicas {
		return callWithReplicas
	}
	return call
}

// Decode decodes the reply to a heartbeat. It returns the fields as INFO reports them, and [Digest]. The fields of
// replicas, such as "slave0", contain only "state" and "lag".
func Decode(text string) (map[string]string, error) {
	words := strings.Fields(text)
	if len(words) < len(replyFields) {
		return nil, fmt.Errorf("unexpected reply %.80q to a heartbeat", text)
	}
	fields := make(map[string]string, len(words))
	for i, name := range replyFields {
		if words[i] != noField {
			fields[name] = words[i]
		}
	}
	rest := words[len(replyFields):]
	if len(rest) > 0 && !strings.Contains(rest[0], ",") {
		fields[Digest], rest = rest[0], rest[1:]
	}
	for i, word := range rest {
		state, lag, _ := strings.Cut(word, ",")
		fields["slave"+strconv.Itoa(i)] = "state=" + state + ",lag=" + lag
	}
	return fields, nil
}

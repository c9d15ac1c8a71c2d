package scripts

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/frame"
)

// The words of the reply to a heartbeat, as INFO names them.
var heartbeatFields = []string{"run_id", "master_replid2", "second_repl_offset", "role", "connected_slaves",
	"maxmemory", "maxmemory_policy", "server_time_usec"}

// noField replaces a field that the server does not report.
const noField = "?"

// The calls of the heartbeat script.
var (
	heartbeat             = frame.NewCall(Heartbeat, nil)
	heartbeatWithReplicas = frame.NewCall(Heartbeat, nil, "replicas")
)

// Digest is the field of a heartbeat in a cluster that changes with the identity of the node, its slots, and the number
// of its replicas.
const Digest = "digest"

// Unchanged replaces the fields of the identity if the digest is the one in the call.
const Unchanged = "="

// ClusterHeartbeat returns the call of a heartbeat to the node that owns the slot of tag. The reply has the field
// [Digest] and the state of each replica. digest is that of the last heartbeat, if there was one.
func ClusterHeartbeat(tag, digest string) *frame.Call {
	return frame.NewCall(Heartbeat, []string{tag}, cmp.Or(digest, noField))
}

// HeartbeatCall returns the call of a heartbeat. If replicas is set, the reply has the state of each replica.
func HeartbeatCall(replicas bool) *frame.Call {
	if replicas {
		return heartbeatWithReplicas
	}
	return heartbeat
}

// DecodeHeartbeat decodes the reply to a heartbeat. It returns fields of INFO, of the replicas only "state" and "lag",
// and Digest.
func DecodeHeartbeat(text string) (map[string]string, error) {
	words := strings.Fields(text)
	if len(words) < len(heartbeatFields) {
		return nil, fmt.Errorf("unexpected reply %.80q to a heartbeat", text)
	}
	fields := make(map[string]string, len(words))
	for i, name := range heartbeatFields {
		if words[i] != noField {
			fields[name] = words[i]
		}
	}
	rest := words[len(heartbeatFields):]
	if len(rest) > 0 && !strings.Contains(rest[0], ",") {
		fields[Digest], rest = rest[0], rest[1:]
	}
	for i, word := range rest {
		state, lag, _ := strings.Cut(word, ",")
		fields["slave"+strconv.Itoa(i)] = "state=" + state + ",lag=" + lag
	}
	return fields, nil
}

package scripts

import (
	"fmt"
	"strconv"
	"strings"
)

// The words of the reply to a heartbeat, as INFO names them.
var heartbeatFields = []string{"run_id", "master_replid2", "second_repl_offset", "role", "connected_slaves",
	"maxmemory", "maxmemory_policy", "server_time_usec"}

// noField replaces a field that the server does not report.
const noField = "?"

// The calls of the heartbeat script.
var (
	heartbeat             = NewCall(Heartbeat, nil)
	heartbeatWithReplicas = NewCall(Heartbeat, nil, "replicas")
)

// HeartbeatCall returns the call of a heartbeat. If replicas is set, the reply has the state of each replica.
func HeartbeatCall(replicas bool) *Call {
	if replicas {
		return heartbeatWithReplicas
	}
	return heartbeat
}

// DecodeHeartbeat decodes the reply to a heartbeat. It returns fields of INFO, of the replicas only "state" and "lag".
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
	for i, word := range words[len(heartbeatFields):] {
		state, lag, _ := strings.Cut(word, ",")
		fields["slave"+strconv.Itoa(i)] = "state=" + state + ",lag=" + lag
	}
	return fields, nil
}

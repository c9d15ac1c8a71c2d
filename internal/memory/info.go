package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// infoLocked returns the reply of INFO: the lines of Redis 7.0 that a lock's client may need. sections are the
// requested sections, empty for all.
func (m *Master) infoLocked(now int64, sections []string) string {
	all := len(sections) == 0
	for i, s := range sections {
		sections[i] = strings.ToLower(s)
		all = all || slices.Contains([]string{"all", "default", "everything"}, sections[i])
	}
	var b strings.Builder
	section := func(name string, lines ...string) {
		if !all && !slices.Contains(sections, strings.ToLower(name)) {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n", name)
		for _, line := range lines {
			b.WriteString(line + "\r\n")
		}
	}
	replicaOf := ""
	if m.server.role != "master" {
		replicaOf = "master_host:master-0\r\nmaster_port:6379\r\nmaster_link_status:up\r\n"
	}
	_, second, _ := strings.Cut(m.server.env.Identity(), "/")
	replID2, offset, _ := strings.Cut(second, "/")
	up := int64(time.Since(m.server.started).Seconds())
	section("Server", "redis_version:7.0.15", "redis_mode:standalone", "run_id:"+m.server.env.RunID, "tcp_port:6379",
		fmt.Sprintf("server_time_usec:%d", now), fmt.Sprintf("uptime_in_seconds:%d", up))
	section("Clients", fmt.Sprintf("connected_clients:%d", len(m.conns)))
	section("Memory", fmt.Sprintf("maxmemory:%d", m.server.limit), "maxmemory_policy:"+m.server.policy)
	section("Persistence", "loading:0", "async_loading:0", "aof_enabled:0")
	section("Replication", "role:"+m.server.role, replicaOf+"connected_slaves:0", "master_replid:"+m.server.replID,
		"master_replid2:"+replID2, "master_repl_offset:0", "second_repl_offset:"+offset)
	section("Cluster", "cluster_enabled:0")
	section("Keyspace", fmt.Sprintf("db0:keys=%d,expires=0,avg_ttl=0", len(m.state.Keys(now))))
	return b.String()
}

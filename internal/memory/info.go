package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// info returns the reply to INFO: those lines of Redis 7.0 that a lock client may need. sections are the requested
// sections; if sections is empty, info returns all sections.
func (s *Server) info(sections []string) string {
	now := s.Now()
	all := len(sections) == 0
	for i, one := range sections {
		sections[i] = strings.ToLower(one)
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
	role, replicaOf := "master", ""
	if s.Replica {
		role, replicaOf = "slave", "master_host:master-0\r\nmaster_port:6379\r\nmaster_link_status:up\r\n"
	}
	_, second, _ := strings.Cut(s.Env.Identity(), "/")
	replID2, offset, _ := strings.Cut(second, "/")
	up := int64(time.Since(s.started).Seconds())
	section("Server", "redis_version:7.0.15", "redis_mode:standalone", "run_id:"+s.Env.RunID, "tcp_port:6379",
		fmt.Sprintf("server_time_usec:%d", now), fmt.Sprintf("uptime_in_seconds:%d", up))
	section("Clients", fmt.Sprintf("connected_clients:%d", s.Connections))
	section("Memory", "maxmemory:0", "maxmemory_policy:noeviction")
	section("Persistence", "loading:0", "async_loading:0", "aof_enabled:"+bit(s.config["appendonly"] != "no"),
		"aof_rewrite_in_progress:"+bit(s.rewriting), "aof_rewrite_scheduled:0")
	section("Replication", "role:"+role, replicaOf+"connected_slaves:0", "master_replid:"+s.ReplID,
		"master_replid2:"+replID2, "master_repl_offset:0", "second_repl_offset:"+offset)
	section("Cluster", "cluster_enabled:0")
	section("Keyspace", fmt.Sprintf("db0:keys=%d,expires=0,avg_ttl=0", len(s.State.Keys(now))))
	return b.String()
}

// bit returns b as INFO shows it.
func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const noVote = "it has no vote, and one failure less is survived"

// judgeInfo looks at what INFO says of one master alone.
func (x *patient) judgeInfo() {
	i := x.info
	if i.RunID == "" || i.ReplID == "" {
		x.find(Failure, "identity", "its INFO has no run_id or no master_replid",
			"nobody could know whether it has restarted and forgotten locks, so "+noVote, "name a Redis or Valkey server, and no proxy in between")
	}
	if i.Loading {
		x.find(Failure, "loading", "it is still loading its data", noVote+", until it is ready", "wait; it is asked again by itself")
	}
	if i.Role != "master" {
		x.find(Failure, "role", fmt.Sprintf("its role is %q, a replica of %s:%s", i.Role, x.text["master_host"], x.text["master_port"]),
			noVote+"; copies of locks would be counted as votes", "name its master in its place, or make it one (REPLICAOF NO ONE) that shares nothing with the others")
	}
	if i.Cluster {
		x.find(Failure, "cluster", "it is a cluster node", noVote+": names hash to other nodes, and a failover forgets locks",
			"use a server with cluster-enabled no")
	}
	x.judgeEviction()
	x.judgeVersion()
	x.judgeMemory()
	if i.Role == "master" && i.Replicas > 0 {
		severity := Warning
		if x.opts.Unguarded {
			severity = Failure
		}
		x.find(severity, "replicas", fmt.Sprintf("it has %d replicas", i.Replicas),
			"a replica that is promoted in its place lacks the last writes: a lock may be given away, unless the restart guard is on; and then its vote is lost for the guard time",
			"attach none; a promotion is survived only where the restart guard is on in the whole fleet")
	}
	if x.text["rdb_last_bgsave_status"] == "err" {
		x.find(Warning, "writes", "its last snapshot has failed (rdb_last_bgsave_status:err)",
			"with stop-writes-on-bgsave-error yes, the default, it takes no writes, and "+noVote, "look into its log; make room on its disk, or switch snapshots off: CONFIG SET save \"\"")
	}
	if x.text["aof_last_write_status"] == "err" {
		x.find(Failure, "persistence", "it cannot write its append-only file (aof_last_write_status:err)",
			"it takes no writes, and "+noVote, "look into its log; make room on its disk")
	}
}

func (x *patient) judgeEviction() {
	i := x.info
	if i.Policy == "noeviction" || i.Policy == "" {
		return
	}
	const do = "CONFIG SET maxmemory-policy noeviction"
	switch {
	case i.MaxMemory == 0:
		x.find(Notice, "eviction", fmt.Sprintf("its maxmemory-policy is %q, without a limit now", i.Policy),
			"once somebody sets maxmemory, keys of locks may be dropped, and the master is refused", do)
	case x.m.cfg.allowEviction:
		x.find(Warning, "eviction", fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d, allowed by AllowEviction", i.Policy, i.MaxMemory),
			"a lock that is dropped on one master of a majority is a second holder, and nothing announces it", do)
	default:
		x.find(Failure, "eviction", fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d", i.Policy, i.MaxMemory),
			noVote+": a lock that is dropped is a second holder, and nothing announces it", do+", or maxmemory 0")
	}
}

// The versions that are supported: the first, and the last major one that the tests run on.
var supported = map[bool]struct {
	name  string
	first [2]int
	last  int
}{
	false: {"Redis", [2]int{6, 2}, 8},
	true:  {"Valkey", [2]int{7, 2}, 9},
}

func (x *patient) judgeVersion() {
	s := supported[x.info.Valkey]
	major, minor, ok := parseVersion(x.info.Version)
	switch {
	case !ok:
		x.find(Warning, "version", fmt.Sprintf("its version %.40q cannot be read", x.info.Version), "nobody knows whether the scripts mean the same there",
			fmt.Sprintf("use %s %d.%d to %d", s.name, s.first[0], s.first[1], s.last))
	case major < s.first[0] || major == s.first[0] && minor < s.first[1]:
		x.find(Failure, "version", fmt.Sprintf("it is %s %.40s", s.name, x.info.Version), "scripts and rights are not tested there, and may mean something else",
			fmt.Sprintf("use %s %d.%d or later", s.name, s.first[0], s.first[1]))
	case major > s.last:
		x.find(Notice, "version", fmt.Sprintf("it is %s %.40s, newer than what is tested", s.name, x.info.Version), "nothing that is known",
			"run the tests against it")
	}
}

func parseVersion(v string) (major, minor int, ok bool) {
	parts := strings.Split(v, ".")
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}

// judgeMemory warns before a limit is reached, where every acquire fails.
func (x *patient) judgeMemory() {
	used, limit := number(x.text["used_memory"]), x.info.MaxMemory
	if limit <= 0 || used < limit/10*9 {
		return
	}
	severity, endangers := Warning, "soon it takes no more locks"
	if used >= limit {
		severity, endangers = Failure, "it takes no locks (OOM), and one failure less is survived"
	}
	x.find(severity, "memory", fmt.Sprintf("it uses %d of %d bytes of maxmemory", used, limit), endangers, "raise maxmemory, or keep other data elsewhere")
}

// compare looks at what several masters say: the same server twice, and clocks.
func compare(patients []*patient, skew time.Duration) {
	seen := make(map[string]*patient)
	var offsets []int64
	for _, x := range patients {
		if !x.asked {
			continue
		}
		offsets = append(offsets, x.offset(patients))
		if x.info.RunID == "" {
			continue
		}
		first := seen[x.info.RunID]
		if first == nil {
			seen[x.info.RunID] = x
			continue
		}
		x.find(Failure, "identity", fmt.Sprintf("it is the same server as %s (run_id %s)", first.m.name, x.info.RunID),
			"one server would have two votes, and its failure would cost both; "+noVote, "name different servers, each on a machine of its own")
	}
	if len(offsets) < 2 {
		return
	}
	slices.Sort(offsets)
	median := offsets[len(offsets)/2]
	for _, x := range patients {
		if x.asked {
			x.judgeClock(x.offset(patients)-median, skew)
		}
	}
}

// offset is the master's time less this machine's, in microseconds, up to a number that is the same for all.
func (x *patient) offset(patients []*patient) int64 {
	for _, first := range patients {
		if first.asked {
			return x.info.Time - first.info.Time - x.info.Read.Sub(first.info.Read).Microseconds()
		}
	}
	return 0
}

func (x *patient) judgeClock(off int64, skew time.Duration) {
	d := time.Duration(max(-maxMicros, min(off, maxMicros))) * time.Microsecond
	away := max(d, -d) - x.info.RTT/2
	word := "ahead of"
	if d < 0 {
		word = "behind"
	}
	what := fmt.Sprintf("its clock is %v %s the median of the masters; the bound is %v", max(d, -d).Round(10*time.Millisecond), word, skew)
	const do = "let chrony or ntpd set its clock, slowly and not by a jump"
	switch {
	case away > skew:
		x.find(Failure, "clock", what, "its votes are refused as stale or ahead, and after a restart it is never admitted; one failure less is survived", do)
	case away > skew/2:
		x.find(Warning, "clock", what, "a little more, and its votes are lost", do)
	}
}

// maxMicros is the largest number of microseconds that a Duration holds.
const maxMicros = int64(1<<63-1) / int64(time.Microsecond)

package transport

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Info is what a master reports about itself: at the start of each connection, and again on each heartbeat.
type Info struct {
	RunID        string
	ReplID2      string // master_replid2: zeros before a promotion, and after the backlog was freed
	SecondOffset int64  // second_repl_offset: -1 if ReplID2 is zeros
	Started      int64  // when the server started, in us of its clock; 0 if it is not known; read once per connection
	SetBack      bool   // whether the clock was set back by more than the server has run; read once per connection
	Role         string // "master", "slave"
	Version      string // "7.0.15"; of Valkey and of another product its own version
	Product      string // the name of a server that is neither Redis nor Valkey; "" of those
	Valkey       bool
	Cluster      bool
	Sentinel     bool // whether the server is a sentinel, not a master
	Loading      bool
	Policy       string // maxmemory_policy
	MaxMemory    int64  // bytes; 0 is no limit
	Replicas     int
	// BacklogTTL is repl-backlog-ttl: how long a server without replicas keeps the backlog and ReplID2; 0 means forever.
	// It is read once per connection, and 0 if CONFIG GET is not allowed.
	BacklogTTL time.Duration
	// Late is how long a server that this one has replaced may have continued to grant locks in a partition: 12 s, that
	// is, at most 10 s of min-replicas-max-lag and 2 s until the server notices. It is 0 if the master has no failover
	// ([Transport.FailsOver]).
	Late time.Duration
	// Evicted is evicted_keys: the number of keys that the server has evicted. It is read once per connection.
	Evicted int64
	// Moves counts the connections that have ended because the hash slot of the bucket was being moved, or were the first
	// after the server had evicted keys, as far as this client has seen. Each time, locks may be lost, even if the
	// identity stays the same. See [Transport.Quarantined].
	Moves uint64
	// Refused reports whether the server has refused the script of the last heartbeat, for any reason.
	Refused bool
	Persistence
	Reading
}

// Persistence is what a master reports about its append-only file.
type Persistence struct {
	AOF       string // aof_enabled: "1" or "0"; "" if it is not reported
	Rewriting bool   // whether the file is being rewritten, or will be
	// Fsync is appendfsync, and NoFsync no-appendfsync-on-rewrite. They are read at the start of each connection and, if
	// AOF is "1", on every fourth heartbeat. Both are "" if CONFIG GET is not allowed.
	Fsync, NoFsync string
	age            int // number of heartbeats since they were read
}

// fsyncSettings matches appendfsync and no-appendfsync-on-rewrite.
const fsyncSettings = "*appendfsync*"

// questions returns the question that reads Fsync and NoFsync again, if it is due with the next heartbeat and could be
// read before.
func (p *Persistence) questions() []wire.Question {
	if p.AOF != "1" || p.Fsync == "" {
		return nil
	}
	if p.age = (p.age + 1) % settingsEvery; p.age != 0 {
		return nil
	}
	return []wire.Question{wire.ConfigGet(fsyncSettings, p.readFsync)}
}

// readFsync reads the reply to CONFIG GET of fsyncSettings.
func (p *Persistence) readFsync(settings map[string]string, _ error) {
	p.Fsync, p.NoFsync = settings["appendfsync"], settings["no-appendfsync-on-rewrite"]
}

// Lossy returns the settings with which a crash may lose acknowledged writes, such as "appendonly no, appendfsync
// everysec", or "" if none of those that are known does.
func (p *Persistence) Lossy() string {
	if p.AOF == "0" { // the others do not matter
		return "appendonly no"
	}
	var list []string
	if p.Fsync != "" && p.Fsync != "always" {
		list = append(list, "appendfsync "+p.Fsync)
	}
	if p.NoFsync != "" && p.NoFsync != "no" {
		list = append(list, "no-appendfsync-on-rewrite "+p.NoFsync)
	}
	return strings.Join(list, ", ")
}

// Unverified reports whether no known setting is lossy, but not all are known.
func (p *Persistence) Unverified() bool {
	return p.Lossy() == "" && (p.AOF == "" || p.Fsync == "" || p.NoFsync == "")
}

// after returns p as it counts after last was read on the same connection. A file that was off and is on again lacks
// writes until it has been rewritten, so it counts as off.
func (p Persistence) after(last Persistence) Persistence {
	//mutant:aof-incomplete = false
	if last.AOF == "0" && p.Rewriting {
		p.AOF = "0"
	}
	return p
}

// A Reading is the time of a master's clock, read in one exchange.
type Reading struct {
	Time int64         // in us since 1970, at Read
	Read clock.Instant // the local instant that corresponds to Time: the middle of the exchange
	RTT  time.Duration // duration of the exchange; Time is uncertain by half of it
}

// noID is the value that a server reports for a replication id that it does not have.
const noID = "0000000000000000000000000000000000000000"

// Identity returns "run_id/master_replid2/second_repl_offset". A changed identity means that the server may have lost
// locks: it has restarted, or was a replica and was promoted. The one exception is a server that has freed its
// replication backlog, and with it the record of a promotion: its identity changes from run_id/X/n to run_id/000.../-1.
// The session then continues, and the next event contains the new identity. master_replid is not included, because a
// backup or a first replica changes it.
func (info Info) Identity() string {
	return info.RunID + "/" + info.ReplID2 + "/" + strconv.FormatInt(info.SecondOffset, 10)
}

// freedFrom reports whether the server has freed its replication backlog since last was read.
func (info Info) freedFrom(last Info) bool {
	return info.RunID == last.RunID && info.ReplID2 == noID && info.SecondOffset == -1 && last.ReplID2 != noID
}

// InfoFields parses the reply of INFO.
func InfoFields(text string) map[string]string { return pairs(strings.SplitSeq(text, "\r\n"), ":") }

// pairs parses parts of the form key, mark, value, and ignores other parts. It returns the values by key.
func pairs(parts iter.Seq[string], mark string) map[string]string {
	values := make(map[string]string)
	for part := range parts {
		if key, value, ok := strings.Cut(part, mark); ok {
			values[key] = value
		}
	}
	return values
}

// products lists servers that are neither Redis nor Valkey but report a redis_version. Each has a field of INFO that
// only it reports, or the name of its program in the field executable.
var products = []struct{ name, field, program string }{
	{"KeyDB", "mvcc_depth", "keydb"},
	{"Garnet", "garnet_version", "garnet"},
	{"Dragonfly", "dragonfly_version", "dragonfly"},
	{"Kvrocks", "kvrocks_version", "kvrocks"},
	{"Pika", "pika_version", "pika"},
	{"Redict", "redict_version", "redict"},
	{"Tendis", "tendis_version", "tendis"},
}

// productOf returns the name and the version of a server that is neither Redis nor Valkey, or "".
func productOf(fields map[string]string) (name, version string) {
	program := strings.ToLower(path.Base(fields["executable"]))
	for _, product := range products {
		if fields[product.field] != "" || strings.HasPrefix(program, product.program) {
			return product.name, cmp.Or(fields[strings.ToLower(product.name)+"_version"], fields["redis_version"])
		}
	}
	if fields["role"] == "active-replica" { // only KeyDB has such a role
		return "KeyDB", fields["redis_version"]
	}
	if name := fields["server_name"]; name != "" && name != "valkey" && name != "redis" {
		return name, cmp.Or(fields[name+"_version"], fields["redis_version"])
	}
	return "", ""
}

// infoOf converts fields of INFO to an Info. Fields that a server does not report are zero.
func infoOf(fields map[string]string) Info {
	product, version := productOf(fields)
	started, up := int64(0), Number(fields["uptime_in_seconds"])
	if fields["uptime_in_seconds"] != "" {
		started = Number(fields["server_time_usec"]) - up*1_000_000
	}
	return Info{
		RunID:        fields["run_id"],
		ReplID2:      fields["master_replid2"],
		SecondOffset: Number(fields["second_repl_offset"]),
		Started:      started,
		SetBack:      up < 0,
		Role:         fields["role"],
		Sentinel:     fields["redis_mode"] == "sentinel",
		Product:      product,
		Version:      cmp.Or(version, fields["valkey_version"], fields["redis_version"]),
		Valkey:       fields["valkey_version"] != "" || fields["server_name"] == "valkey",
		Cluster:      fields["cluster_enabled"] == "1",
		Loading:      fields["loading"] == "1" || fields["async_loading"] == "1",
		Policy:       fields["maxmemory_policy"],
		MaxMemory:    Number(fields["maxmemory"]),
		Evicted:      Number(fields["evicted_keys"]),
		Replicas:     replicaCount(fields),
		Persistence: Persistence{
			AOF:       fields["aof_enabled"],
			Rewriting: fields["aof_rewrite_in_progress"] == "1" || fields["aof_rewrite_scheduled"] == "1",
		},
		Reading: Reading{Time: Number(fields["server_time_usec"])},
	}
}

// readAt sets Read and RTT of a reading that was requested at asked and has just arrived.
func (info *Info) readAt(clk *clock.Clock, asked clock.Instant) {
	info.RTT = clk.Now().Sub(asked)
	info.Read = asked.Add(info.RTT / 2)
}

// stopsScripts reports whether min-replicas-to-write applies to the writes of scripts. In Redis before 6.2.7 it does
// not.
func (info *Info) stopsScripts() bool {
	var major, minor, patch int
	_, err := fmt.Sscanf(info.Version, "%d.%d.%d", &major, &minor, &patch)
	return info.Valkey || err == nil && (major >= 7 || major == 6 && minor == 2 && patch >= 7)
}

// Number returns the value of a field of INFO, or 0 if it is not a number.
func Number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

const (
	noVote = "it has no vote, so " + FewerFailures
	// FewerFailures is the risk of a master without a vote, as long as the others are a quorum.
	FewerFailures = "fewer failures are tolerated"
)

// TwoVotes is the risk of two masters that are one server.
const TwoVotes = "one server would have two votes, and its failure would cost both; " + noVote

// SameServer says that a master is the same server as another master.
func SameServer(other, runID string) string {
	return fmt.Sprintf("it is the same server as %s (run_id %s)", other, runID)
}

// evicts reports whether the server evicts keys when its memory is full.
func (info Info) evicts() bool { return info.MaxMemory > 0 && info.Policy != "noeviction" }

// Unfit returns a finding for each reason why the server must not hold locks.
func (info Info) Unfit(cfg *Config) (list []redlockinfo.Finding) {
	add := func(about, what, risk, fix string) {
		list = append(list, redlockinfo.Finding{
			Severity: redlockinfo.Failure, About: about, NoVote: true, What: what, Risk: risk, Fix: fix,
		})
	}
	if info.Sentinel {
		add("role", "it is a sentinel, not a master", noVote, stepSentinelURL)
		return list
	}
	var lacks []string
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"run_id", info.RunID == ""}, {"master_replid2", info.ReplID2 == ""}, {"server_time_usec", info.Time == 0},
	} {
		if field.missing {
			lacks = append(lacks, field.name)
		}
	}
	if len(lacks) > 0 {
		add("identity", "its INFO lacks "+strings.Join(lacks, ", "),
			"without them no client can detect its restarts or read its clock; "+noVote,
			stepIdentity)
	}
	if info.Loading {
		add("loading", "it is still loading its data", noVote+", until it is ready", stepLoading)
	}
	const copies = noVote + "; copies of locks would be counted as votes"
	switch info.Role {
	case "master":
	case "slave":
		fix := nameMaster
		if cfg.failover != nil {
			fix = FindMaster
		}
		add("role", "it is a replica", copies, fix)
	case "":
		add("role", "its INFO has no role", noVote, stepServer)
	default:
		add("role", fmt.Sprintf("its role is %q, not master", info.Role), copies, stepServer)
	}
	switch {
	case info.Cluster && !cfg.failover.inCluster():
		add("cluster", "it is a cluster node", noVote+": names hash to other nodes, and a failover loses locks",
			stepCluster)
	case !info.Cluster && cfg.failover.inCluster():
		add("cluster", "it is not a cluster node", noVote, stepSingle)
	}
	if info.evicts() && !cfg.AllowEviction {
		add("eviction", fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d", info.Policy, info.MaxMemory),
			noVote+": an evicted lock can get a second holder unnoticed, also with a volatile- policy, since locks "+
				"have a TTL; pool.AllowEviction accepts that risk", noEviction)
	}
	return list
}

// Advice in error texts. Package diagnose replaces it with a step for the server in question.
const (
	nameMaster = "use the address of its master instead, or make it a master again (REPLICAOF NO ONE); " +
		"redlock check shows which"
	FindMaster = "the client looks for its master again; if this lasts, redlock check shows what to do"
	noEviction = "set maxmemory-policy to noeviction, by CONFIG SET or in the parameters of a managed service"
)

// An UnfitError says why a server is not fit to hold locks. An error that matches fault.ErrRefused may wrap it.
type UnfitError struct{ redlockinfo.Finding }

func (e *UnfitError) Error() string { return e.What }

// verdict returns an error if the server is not fit to hold locks.
func (info Info) verdict(cfg *Config) error {
	list := info.Unfit(cfg)
	if len(list) == 0 {
		return nil
	}
	return refuse(list[0])
}

// refuse returns the error of a server with this finding.
func refuse(f redlockinfo.Finding) error {
	return fault.New(fmt.Sprintf("refused: %s: %s; %s", f.What, f.Risk, f.Fix), fault.ErrRefused, &UnfitError{f})
}

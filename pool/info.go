package pool

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/teeth"
)

// Info is what a master said of itself on a connection: first thing, and again on each heartbeat.
type Info struct {
	RunID, ReplID string
	Role          string // "master", "slave"
	Version       string // "7.0.15"; of Valkey its own version
	Valkey        bool
	Cluster       bool
	Loading       bool
	Policy        string // maxmemory_policy
	MaxMemory     int64  // bytes; 0 is no limit
	Replicas      int
	AOF           bool
	Time          int64         // the master's own clock in us since 1970, at Read
	Read          clock.Instant // this machine's instant belonging to Time: the middle of the exchange
	RTT           time.Duration // how long the exchange took; Time is uncertain by half of it

	noClock bool          // INFO has no clock, Time is from TIME
	asked   clock.Instant // when INFO was asked in the handshake, and how long its reply took
	took    time.Duration
}

// Identity is "run_id/master_replid". Another identity than before says that the server may have forgotten locks.
func (i Info) Identity() string {
	if teeth.RunIDAlone {
		return i.RunID + "/0"
	}
	return i.RunID + "/" + i.ReplID
}

// parseInfo reads the reply of INFO. Fields that a server does not have stay zero.
func parseInfo(text string) Info {
	var i Info
	for len(text) > 0 {
		line := text
		if n := strings.IndexByte(text, '\n'); n >= 0 {
			line, text = text[:n], text[n+1:]
		} else {
			text = ""
		}
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		if ok {
			i.set(key, value)
		}
	}
	return i
}

func (i *Info) set(key, value string) {
	switch key {
	case "run_id":
		i.RunID = value
	case "master_replid":
		i.ReplID = value
	case "role":
		i.Role = value
	case "redis_version":
		if !i.Valkey {
			i.Version = value
		}
	case "valkey_version":
		i.Valkey, i.Version = true, value
	case "server_name":
		i.Valkey = i.Valkey || value == "valkey"
	case "cluster_enabled":
		i.Cluster = value == "1"
	case "loading", "async_loading":
		i.Loading = i.Loading || value == "1"
	case "maxmemory_policy":
		i.Policy = value
	case "maxmemory":
		i.MaxMemory = number(value)
	case "connected_slaves":
		i.Replicas = int(number(value))
	case "aof_enabled":
		i.AOF = value == "1"
	case "server_time_usec":
		i.Time = number(value)
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// verdict says why the server is not fit to hold locks, or nil. Each refusal says what is wrong, what it endangers
// and what to do.
func (i Info) verdict(allowEviction bool) error {
	switch {
	case i.RunID == "" || i.ReplID == "":
		return refused("its INFO has no run_id or no master_replid: nobody could know whether it has restarted and forgotten " +
			"locks; use Redis or Valkey, and no proxy in between")
	case i.Loading:
		return refused("it is still loading its data; it is asked again until it is ready")
	case i.Role != "master":
		return refused(fmt.Sprintf("its role is %q, not master: a replica takes no locks, and copies of a lock on it would be "+
			"counted as votes; name its master, or make it one (REPLICAOF NO ONE)", i.Role))
	case i.Cluster:
		return refused("it is a cluster node: names that hash to other nodes fail, and a failover forgets locks; use a server " +
			"with cluster-enabled no")
	case i.MaxMemory > 0 && i.Policy != "noeviction" && !allowEviction:
		return refused(fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d: it may drop the key of a lock that is held, "+
			"and a second holder gets in unnoticed; CONFIG SET maxmemory-policy noeviction, or maxmemory 0", i.Policy, i.MaxMemory))
	}
	return nil
}

func refused(text string) error { return newCause("refused: "+text, ErrRefused) }

// infoDenied explains a NOPERM to INFO.
func infoDenied(user string, err error) error {
	if user == "" {
		user = "default"
	}
	return newCause(fmt.Sprintf("refused: the user %q may not run INFO (%v): without it nobody can know whether this master has "+
		"restarted and forgotten locks, so it gets no vote; INFO is in the category @dangerous, grant it by ACL SETUSER %s +info",
		user, err, user), ErrRefused, err)
}

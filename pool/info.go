package pool

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool/internal/fault"
)

// Info is what a master said of itself on a connection: first thing, and again on each heartbeat.
type Info struct {
	RunID        string
	ReplID2      string // master_replid2: set by a promotion, zeros before one and after the backlog was freed
	SecondOffset int64  // second_repl_offset: -1 with the zeros
	Role         string // "master", "slave"
	Version      string // "7.0.15"; of Valkey its own version
	Valkey       bool
	Cluster      bool
	Loading      bool
	Policy       string // maxmemory_policy
	MaxMemory    int64  // bytes; 0 is no limit
	Replicas     int
	// BacklogTTL is repl-backlog-ttl: how long without replicas the backlog is kept, and ReplID2 with it; 0 is for
	// ever. It is read once a connection. BacklogKnown is false where CONFIG GET is not allowed.
	BacklogTTL   time.Duration
	BacklogKnown bool
	Time         int64         // the master's own clock in us since 1970, at Read
	Read         clock.Instant // this machine's instant belonging to Time: the middle of the exchange
	RTT          time.Duration // how long the exchange took; Time is uncertain by half of it
}

// noID is what a server has in the place of a replication id that it does not have.
const noID = "0000000000000000000000000000000000000000"

// Identity is "run_id/master_replid2/second_repl_offset". Another identity than before says that the server may have
// lost locks: it has started anew, or was a replica and was promoted. The one exception is a server that has freed its
// replication backlog, and with it the memory of a promotion: from run_id/X/n to run_id/000.../-1. That loses nothing.
// Such a session goes on, and its next event has the new identity.
//
// master_replid is no part of it: it changes when a backup or a first replica attaches, which loses nothing.
func (i Info) Identity() string {
	return i.RunID + "/" + i.ReplID2 + "/" + strconv.FormatInt(i.SecondOffset, 10)
}

// freedFrom reports whether the server of before has freed its replication backlog since.
func (i Info) freedFrom(before Info) bool {
	return i.RunID == before.RunID && i.ReplID2 == noID && i.SecondOffset == -1 && before.ReplID2 != noID
}

// parseInfo reads the reply of INFO. Fields that a server does not have stay zero.
func parseInfo(text string) Info {
	var i Info
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			i.set(key, value)
		}
	}
	return i
}

func (i *Info) set(key, value string) {
	switch key {
	case "run_id":
		i.RunID = value
	case "master_replid2":
		i.ReplID2 = value
	case "second_repl_offset":
		i.SecondOffset = number(value)
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
	case i.RunID == "" || i.ReplID2 == "":
		return fault.Refused("its INFO has no run_id or no master_replid2: nobody could know whether it has restarted " +
			"and lost locks; use Redis or Valkey, and no proxy in between")
	case i.Loading:
		return fault.Refused("it is still loading its data; it is asked again until it is ready")
	case i.Role != "master":
		return fault.Refused(fmt.Sprintf("its role is %q, not master: a replica takes no locks of its own, and copies "+
			"of a lock on it would be counted as votes; name its master, or make it one (REPLICAOF NO ONE)", i.Role))
	case i.Cluster:
		return fault.Refused("it is a cluster node: names that hash to other nodes fail, and a failover loses locks; " +
			"use a server with cluster-enabled no")
	case i.MaxMemory > 0 && i.Policy != "noeviction" && !allowEviction:
		return fault.Refused(fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d: it may drop the key of a lock "+
			"that is held, and a second holder gets in unnoticed; CONFIG SET maxmemory-policy noeviction, or maxmemory 0",
			i.Policy, i.MaxMemory))
	}
	return nil
}

// infoDenied explains a NOPERM to INFO.
func infoDenied(user string, err error) error {
	return fault.New(fmt.Sprintf("refused: the user %q may not run INFO (%v): without it nobody can know whether this "+
		"master has restarted and lost locks, so it gets no vote; INFO is in the category @dangerous, grant it by "+
		"ACL SETUSER %s +info", userName(user), err, userName(user)), fault.ErrRefused, err)
}

func userName(user string) string {
	if user == "" {
		return "default"
	}
	return user
}

package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// Faults of the masters' data, or of their ability to write.
var stateScenarios = []scenario{
	{name: "FLUSHALL on two of five", short: true, minority: true, fault: func(x *deployment) {
		x.try(x.list[:2], "FLUSHALL")
		x.wait(time.Second)
		x.voting()
	}},
	{name: "FLUSHALL on three of five, admitted by hand", fault: func(x *deployment) {
		x.try(x.list[2:], "FLUSHALL")
		x.admitByHand()
	}},
	{name: "SCRIPT FLUSH, again and again", short: true, minority: true, fault: func(x *deployment) {
		for range 10 {
			x.try(x.list, "SCRIPT", "FLUSH")
			x.wait(150 * time.Millisecond)
		}
	}},
	{name: "CLIENT KILL on all five, again and again", steady: true, fault: func(x *deployment) {
		for range 6 {
			for _, m := range x.list {
				command(x, m, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			}
			x.wait(300 * time.Millisecond)
		}
	}},
	{name: "two, then three of five out of memory", short: true, fault: func(x *deployment) {
		x.twoThenThree("OOM", func(m Master) { command(x, m, "CONFIG", "SET", "maxmemory", "1") })
		x.try(x.list, "CONFIG", "SET", "maxmemory", "0")
	}},
	{name: "two, then three of five cannot save", setup: cannotSave, fault: func(x *deployment) {
		x.twoThenThree("MISCONF", func(m Master) {
			command(x, m, "CONFIG", "SET", "save", "3600 1000000")
			command(x, m, "BGSAVE")
			redistest.Await(x, hang, func() string {
				if !strings.Contains(string(command(x, m, "INFO", "persistence").([]byte)), "rdb_last_bgsave_status:err") {
					return m.Name() + " could save"
				}
				return ""
			})
		})
		x.try(x.list, "CONFIG", "SET", "save", "")
	}},
	{name: "two, then three of five read-only", fault: func(x *deployment) {
		x.twoThenThree("replica", func(m Master) { command(x, m, "REPLICAOF", "127.0.0.1", "1") })
		x.try(x.list, "REPLICAOF", "NO", "ONE")
		x.voting()
	}},
	{name: "failover to a replica that missed locks", links: true, aside: attachReplica, minority: true,
		fault: func(x *deployment) {
			replica := x.list[5]
			each(x, Master.Pause, replica) // the replica misses everything that is locked from now on
			x.wait(time.Second)
			each(x, Master.Kill, x.list[0])
			each(x, Master.Resume, replica)
			command(x, replica, "REPLICAOF", "NO", "ONE")
			x.links[0].reroute(hostPort(replica.URL()))
			x.list = x.list[1:]
			x.wait(time.Second)
			x.voting()
		}},
}

// cannotSave configures masters whose directory is not writable.
func cannotSave(*testing.T) setup { return setup{args: []string{"--dir", "/proc"}} }

// attachReplica starts a sixth server as a replica of the first.
func attachReplica(x *deployment) {
	replica := mastersWith(x, 1, setup{})[0]
	host, port := x.list[0].Peer()
	command(x, replica, "REPLICAOF", host, port)
	redistest.Await(x, hang, func() string {
		if !strings.Contains(string(command(x, replica, "INFO", "replication").([]byte)), "master_link_status:up") {
			return "the replica has not connected to " + net.JoinHostPort(host, port)
		}
		return ""
	})
	x.list = append(x.list, replica)
}

// twoThenThree disables two masters, which must not affect any lock. Then it disables a third; after that, errors
// must contain word.
func (x *deployment) twoThenThree(word string, spoil func(m Master)) {
	x.Helper()
	for _, m := range x.list[:2] {
		spoil(m)
	}
	x.wait(1500 * time.Millisecond)
	must.Do(x, x.history.More())
	x.mustKeep(summarise(x.history.Events, x.began, history.Stamp()), true)
	spoil(x.list[2])
	redistest.Await(x, hang, func() string {
		if err := x.refusal(); !strings.Contains(err.Error(), word) {
			return fmt.Sprintf("the error %v does not contain %s", err, word)
		}
		return ""
	})
}

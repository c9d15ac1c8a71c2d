package scripts_test

import (
	"net"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// The heartbeat script returns the same values as INFO, and as its model in package reference: on a master without
// replicas, on a master with a replica, and on the replica.
func TestHeartbeatReadsInfo(t *testing.T) {
	servers := redistest.Test(t, 2, redisproc.Config{Args: []string{"--repl-diskless-sync-delay", "0"}})
	master, replica := clientOf(t, servers[0]), clientOf(t, servers[1])
	agree := func(c *client) map[string]string {
		t.Helper()
		var decoded map[string]string
		for _, withReplicas := range []bool{false, true} {
			command, args := heartbeat.Call(withReplicas).Args("", false)
			c.must("MULTI") // so that nothing changes between the script and INFO
			c.must(command, args...)
			c.must("INFO")
			both := must.Get(redis.Strings(c.must("EXEC"), nil))(t)
			reply, info := both[0], both[1]
			clock := regexp.MustCompile(`server_time_usec:\d+`).FindString(info)
			env := reference.Env{InfoFunc: func() string { return info }}
			_, argv := heartbeat.Call(withReplicas).Arguments("")
			want, err := heartbeat.Decode(new(reference.State).Eval(0, env, heartbeat.Script, nil, argv).(string))
			if err != nil || clock != "server_time_usec:"+want["server_time_usec"] {
				t.Errorf("the reference returned %v, %v, want %s", want, err, clock)
			}
			decoded, err = heartbeat.Decode(reply)
			if err != nil || len(decoded) != len(want) || decoded["server_time_usec"] == "" {
				t.Errorf("the reply %q was decoded with the error %v, or incompletely", reply, err)
			}
			for name, value := range want {
				if name != "server_time_usec" && name != "slave0" && decoded[name] != value {
					t.Errorf("%s is %q, but the reference returned %q", name, decoded[name], value)
				}
			}
		}
		return decoded
	}
	if got := agree(master); got["role"] != "master" || got["connected_slaves"] != "0" {
		t.Errorf("a master without replicas reports %v", got)
	}
	host, port, _ := net.SplitHostPort(servers[0].Addr())
	replica.must("REPLICAOF", host, port)
	for end := time.Now().Add(time.Minute); agree(master)["slave0"] != "state=online,lag=0"; {
		if time.Now().After(end) {
			t.Fatalf("a master with a replica reports %v", agree(master))
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got := agree(replica); got["role"] != "slave" {
		t.Errorf("a replica reports %v", got)
	}
}

// A reply with too few words is an error. A field that a server does not report is omitted.
func TestDecodeHeartbeat(t *testing.T) {
	if fields, err := heartbeat.Decode("a b c d e f g h i j"); err == nil {
		t.Errorf("a reply of ten words was decoded as %v", fields)
	}
	fields, err := heartbeat.Decode("a b -1 master ? 0 noeviction 1 0 0 17 online,3 wait_bgsave,0")
	if _, known := fields["connected_slaves"]; err != nil || known || fields["slave0"] != "state=online,lag=3" ||
		fields["slave1"] != "state=wait_bgsave,lag=0" || fields["server_time_usec"] != "17" {
		t.Errorf("the reply was decoded as %v, %v", fields, err)
	}
	fields, err = heartbeat.Decode("= = = master 1 0 noeviction 1 0 0 17 0a1b2c online,3")
	if err != nil || fields["run_id"] != heartbeat.Unchanged || fields[heartbeat.Digest] != "0a1b2c" ||
		fields["slave0"] == "" {
		t.Errorf("the reply of a node of a cluster was decoded as %v, %v", fields, err)
	}
}

// In a cluster, the digest changes with the slots of the node. If the call contains the current digest, the reply
// omits the identity.
func TestHeartbeatOfAClusterNode(t *testing.T) {
	redistest.NeedCluster(t)
	bus := must.Get(redisproc.FreePort())(t)
	s := redistest.Test(t, 1, redisproc.Config{
		Args: []string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus)},
	})[0]
	c := clientOf(t, s)
	c.must("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	beat := func(digest string) map[string]string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			reply, err := redis.String(c.run(heartbeat.ClusterCall("{1}", digest), ""))
			if err == nil {
				fields, err := heartbeat.Decode(reply)
				if err != nil || fields["role"] != "master" || fields["server_time_usec"] == "" {
					t.Fatalf("the reply %q was decoded with the error %v, or incompletely", reply, err)
				}
				return fields
			}
			if time.Now().After(end) { // the cluster is still down
				t.Fatal(err)
			}
		}
	}
	first := beat("")
	again := beat(first[heartbeat.Digest])
	if first["run_id"] == heartbeat.Unchanged || again["run_id"] != heartbeat.Unchanged ||
		again["second_repl_offset"] != heartbeat.Unchanged || again[heartbeat.Digest] != first[heartbeat.Digest] {
		t.Errorf("the first reply was %v\nand the next %v", first, again)
	}
	c.must("CLUSTER", "DELSLOTS", 17)
	c.must("CONFIG", "SET", "cluster-require-full-coverage", "no")
	less := beat(first[heartbeat.Digest])
	c.must("CLUSTER", "ADDSLOTS", 17)
	if less["run_id"] != first["run_id"] || less[heartbeat.Digest] == first[heartbeat.Digest] {
		t.Errorf("the first reply was %v\nand with one slot less %v", first, less)
	}
	if back := beat(less[heartbeat.Digest]); back[heartbeat.Digest] != first[heartbeat.Digest] {
		t.Errorf("the first reply was %v\nand with all slots again %v", first, back)
	}
}

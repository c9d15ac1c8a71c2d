package scripts_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/race"
	"github.com/redlock-go/redlock/internal/scripts"
)

// mostInstructions bounds what an acquire and a release of a free name cost a master together. With Redis 7.0.15 they
// cost 100 400; a plain hash lock, without fence, queue and admission record, costs 64 200.
const mostInstructions = 105_000

// TestInstructions counts the instructions of redis-server for one acquire and release of a new name: those of 3500
// pairs less those of 500, which leaves out the start. The count varies by less than 1 %:
//
//	go test -v -run TestInstructions ./internal/scripts
func TestInstructions(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("needs a run without -short and -race: it runs redis-server in an emulator")
	}
	for _, program := range []string{"valgrind", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program + ": apt-get install " + program)
		}
	}
	n := (instructions(t, 3500) - instructions(t, 500)) / 3000
	t.Logf("%d instructions a pair", n)
	if n > mostInstructions {
		t.Errorf("a pair costs %d instructions, %d are allowed", n, mostInstructions)
	}
}

var collected = regexp.MustCompile(`Collected : ([0-9]+)`)

// instructions runs a server for some pairs and returns its count.
func instructions(t *testing.T, pairs int) int {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
		"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--logfile", "")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	conn := dialWhenUp(t, socket)
	defer conn.Close()
	c := &client{t: t, Conn: conn}
	for _, script := range scripts.All {
		c.must("SCRIPT", "LOAD", script.Text)
	}
	record := c.admittedRecord()
	for i := range pairs {
		k, id := prefix.Keys(fmt.Sprintf("orders:%07d", i)), scripts.GrantID(me, uint64(i), "host/12345")
		ballot := time.Now().UnixMicro()
		acquire := enc.Acquire(&k, id, 10*time.Second, ballot, ballot+31, nil)
		release := enc.Release(&k, scripts.Ending{Grants: []string{id}})
		for _, call := range []*scripts.Call{acquire, release} {
			command, args := call.Args(record, false)
			if err := conn.Send(command, args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * pairs {
		if reply, err := conn.Receive(); err != nil || reply != int64(1) {
			t.Fatalf("call %d: %v, %v", i, reply, err)
		}
	}
	_, _ = conn.Do("SHUTDOWN", "NOSAVE")
	_ = cmd.Wait() // its status is the one of a signal in some versions
	found := collected.FindSubmatch(out.Bytes())
	if found == nil {
		t.Fatalf("no count in %s", out.Bytes())
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// dialWhenUp connects to a server that is starting.
func dialWhenUp(t *testing.T, socket string) redis.Conn {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := redis.Dial("unix", socket)
		if err == nil {
			return conn
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

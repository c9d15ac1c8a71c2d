//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// The procedure of docs/upgrades.md works. With records of another version of the protocol, a client cannot lock,
// and writes nothing. When these records are deleted and the masters are admitted, names can be locked immediately.
func TestProtocolUpgrade(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 3)
	var old []string
	for i := range f.urls {
		record, err := redis.String(f.do(i, "GET", "redlock:admission"), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(record, " ")
		old = append(old, "v2 "+rest)
		f.do(i, "SET", "redlock:admission", old[i])
	}
	masters := "--masters=" + strings.Join(f.urls, " ")
	v := &votingDeployment{f, built(t), setText(t, f.urls)}
	v.start("run", "--wait", "2s", "a", "--", "true").ends(exitRunNoQuorum, `has version "v2"`)
	f.call(exitNoQuorum, `has version "v2"`, "status")
	f.call(exitNoQuorum, `has version "v2"`, "admit", "--timeout", "2s")
	for i := range f.urls {
		if record, err := redis.String(f.do(i, "GET", "redlock:admission"), nil); err != nil || record != old[i] {
			t.Errorf("the record %q was replaced with %q, %v", old[i], record, err)
		}
	}

	// The old command can read the records, and exits with 0.
	call(t, exitDanger, "the list is partial: 3 of 3 masters do not vote", "ls", masters)
	f.all("DEL", "redlock:admission")
	f.call(exitDone, "3 of 3 masters vote", "admit")
	v.start("run", "--wait", "30s", "a", "--", "true").ends(0, "")
}

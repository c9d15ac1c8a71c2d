//go:build unix

package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/redlock"
)

func TestScanSHA(t *testing.T) {
	if sum := sha1.Sum([]byte(scanText)); hex.EncodeToString(sum[:]) != scan.SHA {
		t.Errorf("the SHA-1 of the script is %x, want %s", sum, scan.SHA)
	}
}

// hold acquires locks in this process, with a TTL longer than the test.
func (f *votingDeployment) hold(names ...string) {
	f.t.Helper()
	l := f.locker()
	for _, name := range names {
		if _, err := l.Lock(f.t.Context(), name); err != nil {
			f.t.Fatal(err)
		}
	}
}

// ls lists the names that a quorum holds, with unusual characters too, among many keys of other programs. A master is
// scanned in many small steps, with pauses.
func TestLsListsTheNamesThatAreHeld(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.start("ls").ends(0, "")
	f.hold("orders:2", "orders:1", "or*", "}", "line\nbreak")
	f.all("EVAL", "for i = 1, 5000 do redis.call('SET', 'other:{' .. i .. '}', '') end", 0)
	f.lease(0, "alone", time.Hour)
	f.do(0, "CONFIG", "RESETSTAT")
	began := time.Now()
	f.start("ls").ends(0, "orders:1\n")
	took := time.Since(began)
	text := fmt.Sprintf("%s", f.do(0, "INFO", "commandstats"))
	var calls int
	_, rest, _ := strings.Cut(text, "cmdstat_scan:")
	if _, err := fmt.Sscanf(rest, "calls=%d,", &calls); err != nil {
		t.Fatalf("INFO cannot be parsed: %v: %s", err, text)
	}
	if calls < 5000/scanStep/2 || took < time.Duration(calls-1)*scanPause {
		t.Errorf("there were %d calls in %v, want smaller steps with pauses", calls, took)
	}
	for args, want := range map[string]string{
		"":           "\"line\\nbreak\"\nor*\norders:1\norders:2\n}\n",
		"or":         "or*\norders:1\norders:2\n",
		"or*":        "or*\n",
		"none":       "",
		"--all al":   "1 of 3  alone\n",
		"--json or*": `{"complete":true,"masters":3,"names":[{"name":"or*","on":3}]}` + "\n",
	} {
		p := f.start("ls", strings.Fields(args)...)
		p.ends(0, "")
		if got := p.said(); got != want {
			t.Errorf("ls %s printed\n%swant\n%s", args, got, want)
		}
	}
	f.start("ls", "--most", "1", "--timeout", "1h").ends(exitDanger, "it has more names; see --most")
	f.kill(0)
	f.start("ls").ends(exitDanger, "orders:2\n")
}

// fencedAhead gives each master a fence of these free names that is an hour ahead, as after all clocks were ahead by
// that and have been set right.
func (f *votingDeployment) fencedAhead(names ...string) {
	f.t.Helper()
	fence := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	for _, name := range names {
		f.all("HSET", "redlock:{"+name+"}", "fence", fence, "kept", 3_660_000)
		f.all("PEXPIRE", "redlock:{"+name+"}", 3_661_000)
	}
}

// H180: ls lists a name that is held after its fence was ahead, and does not list it when it is free.
//
// The key of a lock outlives its lease by at least 75 s. ls does not list a name that was released, nor a lease or a
// share that has expired, nor a hash of another program.
func TestLsListsNoNameThatIsFree(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	l := f.locker()
	for _, name := range []string{"released", "held"} {
		k, err := l.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "released" && k.Unlock(t.Context()) != nil {
			t.Fatal("not released")
		}
	}
	for name, hold := range map[string]func(context.Context, ...redlock.LockOption) (*redlock.Lock, error){
		"read": l.RWLock("read").RLock, "written": l.RWLock("written").Lock, "was read": l.RWLock("was read").RLock,
		"old share": l.RWLock("old share").RLock,
	} {
		k, err := hold(t.Context(), redlock.WithExtension(name != "old share")) // an extension would repair that one
		if err != nil {
			t.Fatal(err)
		}
		if name == "was read" && k.Unlock(t.Context()) != nil {
			t.Fatal("not released")
		}
	}
	if _, err := l.Lock(t.Context(), "jumped", redlock.WithTTL(30*time.Second), redlock.WithExtension(false)); err != nil {
		t.Fatal(err)
	}
	f.do(0, "PEXPIRE", "redlock:{jumped}", 70_000) // as after the clock of this master has jumped forward
	f.do(1, "DEL", "redlock:{jumped}")
	for i := range f.urls {
		f.lease(i, "expired", 0)
		f.lease(i, "expired, fence ahead", 0)
		f.do(i, "HSET", "redlock:{expired, fence ahead}", "kept", 3_660_000)
		f.do(i, "PEXPIRE", "redlock:{expired, fence ahead}", 3_660_000)
		f.lease(i, "left", time.Hour)
		f.do(i, "HSET", "redlock:{other}", "a", 1, "b", 2, "c", 3)
		f.do(i, "RPUSH", "redlock:{list}", 1, 2)
		shares := "redlock:{old share}:shares"
		f.do(i, "EVAL", `for _, id in ipairs(redis.call('ZRANGE', ARGV[1], 0, -1)) do
			redis.call('ZADD', ARGV[1], 1, id)
		end`, 0, shares)
		if left := f.do(i, "PTTL", "redlock:{released}").(int64); left < 60_000 {
			t.Errorf("the fence of a released name is left for %d ms", left)
		}
	}
	f.fencedAhead("ahead", "was ahead", "free")
	f.hold("ahead")
	if k, err := l.Lock(t.Context(), "was ahead"); err != nil || k.Unlock(t.Context()) != nil {
		t.Fatal("not locked and released")
	}
	f.start("ls", "--all").ends(0,
		"3 of 3  ahead\n3 of 3  held\n2 of 3  jumped\n3 of 3  left\n3 of 3  read\n3 of 3  written\n")
	f.start("who", "expired").ends(0, "no client holds it")
	f.start("who", "old share").ends(0, "no client holds it")
	f.start("release", "--force", "--yes", "expired").ends(exitDanger, "no client holds")
}

// H110: ls lists 20 000 names with fences, or 200 000 with -long. If the list is incomplete, ls reports this, in JSON
// too.
func TestLsOfManyNames(t *testing.T) {
	t.Parallel()
	many := 20_000
	if long.Enabled() {
		many = 200_000
	}
	f := newVotingDeployment(t)
	for i := range f.urls {
		f.do(i, "EVAL", `for i = 1, ARGV[1] do
			redis.call('HSET', 'redlock:{' .. i .. '}', 'fence', ARGV[2], 'x:1:y', '1 1 1 ' .. ARGV[2])
			redis.call('HSET', 'redlock:{free' .. i .. '}', 'fence', ARGV[2])
		end`, 0, many, "0000000000000001")
	}
	for args, want := range map[string]struct {
		status   int
		text     string
		complete bool
	}{
		"--timeout 5m":    {0, "", true}, // the default of a minute is too short on a busy machine
		"--most 1000":     {exitDanger, "the list is partial: 127.0.0.1", false},
		"--timeout 200ms": {exitNoQuorum, "it has more keys than could be scanned in time; see --timeout", false},
	} {
		p := f.start("ls", append([]string{"--json"}, strings.Fields(args)...)...)
		p.ends(want.status, want.text)
		said := p.said()
		var list struct {
			Names    []held
			Complete bool
		}
		if err := json.Unmarshal([]byte(said[strings.LastIndex(said, `{"complete"`):]), &list); err != nil {
			t.Fatal(err)
		}
		if all := len(list.Names) == many; list.Complete != want.complete || all != want.complete {
			t.Errorf("ls %s lists %d names and prints complete: %v", args, len(list.Names), list.Complete)
		}
	}
}

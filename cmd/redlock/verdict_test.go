//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// All outputs agree: check and status as text and JSON, their exit statuses, the page, Healthy, and the log of a client
// that tries locks all the time. H72: the exit status shows whether a deployment is healthy, has a danger for locks, or
// cannot grant locks. Each row makes one fault more.
func TestOutputsAgree(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	link := newLink(t, f.servers[1].Addr())
	f.urls[1] = "redis://" + link.addr + "?name=" + f.servers[1].Addr()
	log := f.logs()
	set := func(i int, name, value string) { f.do(i, "CONFIG", "SET", name, value) }
	for _, c := range []struct {
		name   string
		fault  func()
		status int
		spare  int
	}{
		{"no fault", func() {}, exitDone, 1},
		{"a notice", func() { set(0, "maxmemory-policy", "allkeys-lru") }, exitDone, 1},
		{"noeviction", func() { set(0, "maxmemory-policy", "noeviction") }, exitDone, 1},
		{"a revoked right", func() { f.do(1, "ACL", "SETUSER", "default", "-hset") }, exitDanger, 0},
		{"the right again", func() { f.do(1, "ACL", "SETUSER", "default", "+hset") }, exitDone, 1},
		{"a demand for replicas", func() { set(1, "min-replicas-to-write", "1") }, exitDanger, 0},
		{"no demand", func() { set(1, "min-replicas-to-write", "0") }, exitDone, 1},
		{"a hung master", func() { f.freeze(1) }, exitDanger, 0},
		{"two hung masters", func() { f.freeze(2) }, exitNoQuorum, 0},
		{"all answer again", func() { f.thaw(1, 2) }, exitDone, 1},
		{"a snapshot that fails", func() {
			if err := os.Mkdir(filepath.Join(f.servers[1].Dir(), "dump.rdb"), 0o700); err != nil {
				t.Fatal(err)
			}
			set(1, "save", "3600 1")
			f.do(1, "BGSAVE")
		}, exitDanger, 0},
		{"a snapshot that succeeds", func() {
			if err := os.Remove(filepath.Join(f.servers[1].Dir(), "dump.rdb")); err != nil {
				t.Fatal(err)
			}
			f.do(1, "BGSAVE")
		}, exitDone, 1},
		{"a slow link", func() { link.delay.Store(int64(2 * time.Second)) }, exitDanger, 0},
		{"a half-open link", func() { link.delay.Store(int64(time.Hour)) }, exitDanger, 0},
		{"the link again", func() { link.delay.Store(0) }, exitDone, 1},
		{"cut connections and flushed scripts", func() {
			for i := range f.urls {
				f.do(i, "SCRIPT", "FLUSH")
				f.do(i, "CLIENT", "KILL", "TYPE", "normal")
			}
		}, exitDone, 1},
		{"another password", func() {
			set(1, "requirepass", "secret")
			f.kick(1)
		}, exitDanger, 0},
		{"the password again", func() { f.as(1, "secret", "CONFIG", "SET", "requirepass", "") }, exitDone, 1},
		{"a lost record", func() { f.do(2, "DEL", "redlock:admission") }, exitDanger, 0},
		{"the record is back", func() { f.call(exitDone, "3 of 3 masters vote", "admit", "--force", "--yes") }, exitDone, 1},
		{"a replica", func() {
			host, port, _ := strings.Cut(f.servers[0].Addr(), ":")
			f.do(2, "REPLICAOF", host, port)
		}, exitDanger, 0},
		{"a full master beside it", func() {
			set(1, "maxmemory-policy", "noeviction")
			set(1, "maxmemory", "1")
		}, exitNoQuorum, 0},
		{"room again", func() { set(1, "maxmemory", "0") }, exitDanger, 0},
		{"an eviction policy beside it", func() {
			set(1, "maxmemory-policy", "allkeys-lru")
			set(1, "maxmemory", "1gb")
		}, exitNoQuorum, 0},
		{"noeviction again", func() { set(1, "maxmemory-policy", "noeviction") }, exitDanger, 0},
		{"a dead master", func() { f.kill(2) }, exitDanger, 0},
		{"two dead masters", func() { f.kill(1) }, exitNoQuorum, 0},
		{"three dead masters", func() { f.kill(0) }, exitNoQuorum, 0},
	} {
		if c.fault(); !agree(t, c.name, f.urls, c.status, c.spare, log.contradicts) {
			return
		}
	}
}

// A link leads to a server, and delays each part of its replies, or holds it back for good.
type link struct {
	addr  string
	delay atomic.Int64 // a time.Duration
}

func newLink(t *testing.T, to string) *link {
	l := &link{}
	ended := make(chan struct{})
	l.addr = redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
		redistest.Relay(raw, to, func(data []byte) []byte {
			select {
			case <-time.After(time.Duration(l.delay.Load())):
			case <-ended:
			}
			return data
		})
	})
	t.Cleanup(func() { close(ended) }) // before Answer waits for its connections
	return l
}

// A deployment of one master says that none may fail, and that this is a choice.
func TestOneMasterHasNoneToSpare(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 1)
	agree(t, "one master", f.urls, exitDone, 0)
	f.call(exitDone, "notice: quorum", "check")
}

// If the masters run, but refuse the client of the command, no output says to start them, which would cost locks.
func TestRunningMastersAreNotToBeStarted(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for i, url := range f.urls { // a mistake in the file of the operator
		f.urls[i] = strings.Replace(url, "redis://", "rediss://", 1)
	}
	f.call(exitNoQuorum, "2 are needed\n    risk: no lock can be acquired\n    fix: follow the advice for the masters "+
		"below", "check")
	call(t, exitNoQuorum, "2 are needed: redlock check shows the next step for each;", "set", setText(t, f.urls))
}

// Acquires of a free name do not need the right to ZADD, so the master votes, also for a client that connects now.
func TestRightOfSomeCallsCostsNoVote(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.do(1, "ACL", "SETUSER", "default", "-zadd")
	f.call(exitDanger, "zadd\n    risk: it still votes, but it refuses some calls, or clients that connect now\n", "check")
	f.call(exitDone, "3 of 3 masters vote", "status")
}

// Nobody is told to admit masters that have a record in another database: both databases would grant a lock.
func TestOtherDatabaseIsNotNew(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for i := range f.urls {
		f.urls[i] += "/3"
	}
	if _, said := command(append([]string{"check"}, f.urls...)...); strings.Contains(said, "redlock admit") ||
		!strings.Contains(said, "use that database, by /0") {
		t.Error(said)
	}
}

// With a mistyped prefix, a restricted user may read no key. Equal findings of the masters are one.
func TestFindingsOfMastersAreJoined(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	words := []any{"SETUSER", "lock", "on", ">secret"}
	for word := range strings.FieldsSeq(scripts.Prefix("redlock").Rule()) {
		words = append(words, word)
	}
	f.all("ACL", words...)
	for i, s := range f.servers {
		f.urls[i] = "redis://lock:secret@" + s.Addr()
	}
	f.call(exitNoQuorum, strings.Join(f.addrs(), ", ")+": failure: quarantine\n    it cannot be admitted: admit: NOPERM "+
		"this "+
		"user has no permissions to access one of the keys used as arguments\n", "check", "--prefix", "redlokc")
}

// agree waits until check ends with status and says spare, and compares all outputs. more compares others with them. It
// reports whether they agree.
func agree(
	t *testing.T, name string, urls []string, status, spare int, more ...func(*verdictSeen) []string,
) bool {
	t.Helper()
	var seen verdictSeen
	var wrong []string
	if !redistest.Until(func() bool {
		seen = lookAt(t, urls)
		wrong = seen.disagreements()
		for _, compare := range more {
			wrong = append(wrong, compare(&seen)...)
		}
		return len(wrong) == 0 && seen.check.Status == status && seen.check.Spare == spare
	}) {
		t.Errorf("%s: want status %d, spare %d; disagreements %q in\n%+v", name, status, spare, wrong, seen)
		return false
	}
	return true
}

// verdictSeen is what the outputs say.
type verdictSeen struct {
	check             jsonCheck
	status            jsonStatus
	page              webState
	checkEnd, textEnd int // exit statuses
	statusEnd         int
	text, statusText  string
	healthy           error
}

// lookAt runs the commands with these flags and URLs, at the same time.
func lookAt(t *testing.T, masters []string) (v verdictSeen) {
	t.Helper()
	inJSON := func(into any, args ...string) int {
		var out, errs bytes.Buffer
		code := run(append(args, masters...), &out, &errs)
		if err := json.Unmarshal(out.Bytes(), into); err != nil {
			t.Errorf("%q printed %s%s: %v", args, out.String(), errs.String(), err)
		}
		return code
	}
	var wg sync.WaitGroup
	wg.Go(func() { v.checkEnd = inJSON(&v.check, "check", "--json") })
	wg.Go(func() { v.statusEnd = inJSON(&v.status, "status", "--json") })
	wg.Go(func() { v.textEnd, v.text = command(append([]string{"check"}, masters...)...) })
	wg.Go(func() { _, v.statusText = command(append([]string{"status"}, masters...)...) })
	l, viewed := observe(t, masters), observe(t, masters)
	defer l.close()
	defer viewed.close()
	ctx, cancel := l.within()
	defer cancel()
	wg.Go(func() {
		l.settled(ctx)
		v.healthy = l.Healthy(ctx)
	})
	viewed.settled(ctx)
	page := newWebLooker(ctx, viewed).state("")
	wg.Wait()
	if err := json.Unmarshal(page, &v.page); err != nil {
		t.Fatal(err)
	}
	return v
}

// observe returns the client of "redlock status" with these flags and URLs.
func observe(t *testing.T, masters []string) *client { return open(t, masters, observer) }

// open returns a client with these flags and URLs.
func open(t *testing.T, masters []string, opts ...redlock.Option) *client {
	t.Helper()
	a := &app{}
	cmd, rest, err := rootCommand(a).Find(append([]string{"status"}, masters...))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.deployment.read(cmd, cmd.Flags().Args())
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.deployment.open(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// blocksOf returns the findings of a text, without numbers, which differ from one run to the next.
func blocksOf(text string) (list []string) {
	for _, m := range findingBlock.FindAllStringSubmatch(text, -1) {
		for master := range strings.SplitSeq(m[1], ", ") {
			list = append(list, plainFinding(master, m[2], m[3], m[4], m[5], m[6]))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var (
	findingBlock = regexp.MustCompile(
		`(?m)^(\S.*): (notice|warning|failure): (.*)\n    (.*)\n    risk: (.*)\n    fix: (.*)\n`)
	number = regexp.MustCompile(`[0-9][0-9.hms]*`)
)

func plainFinding(master string, parts ...string) string {
	return master + ": " + number.ReplaceAllString(strings.Join(parts, "|"), "N")
}

// disagreements returns in which ways the outputs contradict each other.
func (v *verdictSeen) disagreements() (list []string) {
	must := func(ok bool, what string) {
		if !ok {
			list = append(list, what)
		}
	}
	c := v.check
	must(c.CanLock == v.status.CanLock && c.Spare == v.status.Spare, "check and status")
	must(c.CanLock == v.page.CanLock && c.Spare == v.page.Spare, "check and the page")
	must(c.CanLock == strings.HasPrefix(v.page.Verdict, "Locks can be acquired"), "the page and its verdict")
	must(c.CanLock == (v.healthy == nil), "check and Healthy")
	must(c.Status == v.checkEnd && v.checkEnd == v.textEnd, "the statuses of check")
	must(c.CanLock == (v.checkEnd != exitNoQuorum) && c.CanLock == (v.statusEnd != exitNoQuorum),
		"can_lock and the statuses")
	_, first, _ := strings.Cut(v.text, "locks can be acquired: ")
	first, _, _ = strings.Cut(first, "\n")
	must(strings.HasPrefix(first, "yes") == c.CanLock, "can_lock and the first line")
	must(strings.Contains(v.statusText, "locks can be acquired: "+first+"\n"), "the texts of check and status")
	must(!strings.Contains(first, "no more masters") || c.Spare == 0 && c.CanLock, "spare and the first line")
	must(!strings.Contains(first, "one more") || c.Spare == 1, "spare and the first line")
	worst, noVote, ofQuorum, wrongList := "", map[string]bool{}, "", false
	for _, f := range c.Findings {
		if f.NoVote {
			noVote[f.Master] = true
		}
		if f.Severity != "notice" {
			worst = f.Severity
		}
		wrongList = wrongList || f.About == "list"
		if f.About == "quorum" {
			ofQuorum = f.Severity
			below := func(g jsonFinding) bool { return g.Master != f.Master && g.NoVote }
			must(!strings.Contains(f.Fix, "below") || slices.ContainsFunc(c.Findings, below), "the advice and what is below")
			must(slices.ContainsFunc(c.Quorums, func(q jsonQuorum) bool {
				return strings.Contains(f.What, fmt.Sprintf("%d of %d", q.Able, q.N)) && q.Able <= q.Needed
			}), "the quorum and its finding")
		}
	}
	// With a wrong list only what follows from the records is a finding.
	must(wrongList || (ofQuorum == "failure") == !c.CanLock, "can_lock and the finding about the quorum")
	must(wrongList || c.Spare > 0 || ofQuorum != "", "spare and the finding about the quorum")
	if len(c.Quorums) == 1 && !wrongList { // otherwise a master is in two sets
		must(len(noVote) == c.Quorums[0].N-c.Quorums[0].Able, "the masters without a vote and their findings")
		must(voters(v.status.Masters) == v.status.Quorums[0].Able, "the states and the quorum")
	}
	must((worst == "") == (c.Status == exitDone), "the findings and the status")
	statusText := number.ReplaceAllString(v.statusText, "N") // the numbers of an error may differ
	for _, m := range v.status.Masters {
		if m.State == "voting" {
			continue
		}
		text := number.ReplaceAllString(": "+m.Error+"\n", "N")
		must(m.Error != "" && strings.Contains(statusText, text), "the reason of "+m.Addr+" in status")
		repeated := strings.HasPrefix(m.Error, "pool: ") || strings.HasPrefix(m.Error, "redlock: ")
		must(!repeated, "status repeats the address of "+m.Addr)
		must(wrongList || noVote[m.Addr], "the state of "+m.Addr+" and its findings")
		must(c.CanLock || strings.Contains(fmt.Sprint(v.healthy), m.Addr), "Healthy and "+m.Addr)
	}
	return append(list, v.missing(wrongList)...)
}

// voters returns the number of masters that vote.
func voters(masters []jsonMaster) (n int) {
	for _, m := range masters {
		if m.State == "voting" {
			n++
		}
	}
	return n
}

// missing returns what an output leaves out: a finding, a reason or advice. If the list of masters is wrong, not every
// master has advice of its own.
func (v *verdictSeen) missing(wrongList bool) (list []string) {
	var blocks []string
	idle := map[string]bool{} // whether the advice for a master without a vote is to do nothing
	for _, f := range v.check.Findings {
		blocks = append(blocks, plainFinding(f.Master, f.Severity, f.About, f.What, f.Risk, f.Fix))
		if f.What == "" || f.Risk == "" || f.Fix == "" {
			list = append(list, fmt.Sprintf("a part of the finding %+v", f))
		}
		if f.NoVote {
			idle[f.Master] = strings.HasPrefix(f.Fix, "nothing")
		}
	}
	slices.Sort(blocks)
	blocks = slices.Compact(blocks) // the text has equal findings once
	if text := blocksOf(v.text); !slices.Equal(text, blocks) {
		list = append(list, fmt.Sprintf("the text of check has the findings %q, and the JSON %q", text, blocks))
	}
	if wrongList {
		return list
	}
	q := v.check.Quorums[0]
	if text := fmt.Sprintf("%d of %d masters vote", q.Able, q.N); !strings.Contains(v.page.Verdict, text) ||
		!strings.Contains(v.statusText, text) {
		list = append(list, "the quorum of check on the page or in status")
	}
	for _, m := range v.page.Masters {
		nothing, out := idle[m.Addr]
		if m.Votes == out || out && (m.Error == "" || m.Fix == "" || strings.HasPrefix(m.Fix, "nothing") != nothing) {
			list = append(list, fmt.Sprintf("the reason or the advice for a master without a vote on the page: %+v", m))
		}
	}
	return list
}

//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Several names are locked together. The command gets all names and tokens, in the order of the arguments. When the
// lock of one name is lost, at the next extension, the command gets TERM, and may end by itself.
func TestRunLocksSeveralNames(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	p := f.start("run", "b", "a", "b", "--", "sh", "-c",
		`echo "$REDLOCK_NAME"; echo "$REDLOCK_TOKEN"; echo have it; read x; exit 0`)
	p.hear("have it")
	lines := strings.Split(p.said(), "\n")
	if len(lines) < 5 || lines[0] != "b" || lines[1] != "a" || lines[4] != "have it" || len(lines[2]) != len(lines[3]) {
		t.Errorf("the output is %q, want the names b and a, two tokens, and \"have it\"", lines)
	}
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, "held by")
	f.start("run", "--try", "c", "b", "--", "true").ends(exitRunHeld, `"b"`)
	f.start("run", "--try", "c", "--", "true").ends(0, "")
	p.stdin.Close()
	p.ends(0, "")
	f.start("run", "--try", "a", "b", "--", "true").ends(0, "")
	f.start("run", "--", "-a", "-b", "--", "sh", "-c", `echo "$REDLOCK_NAME"`).ends(0, "-a\n-b\n")

	p = f.start("run", "--ttl", "9s", "--grace", "3s", "a", "b", "--", "sh", "-c",
		"trap 'echo cleaned; exit 4' TERM; echo ready; while :; do sleep 0.05; done")
	p.hear("ready")
	f.all("DEL", "redlock:{b}")
	p.ends(exitRunLost, redlock.ErrLost.Error()[len("redlock: "):])
	if said := p.said(); !strings.Contains(said, "cleaned") || !strings.Contains(said, "status 4") {
		t.Errorf("the output does not contain the words of the command and its status 4:\n%s", said)
	}
}

// A name can be locked by several readers or by one writer. While readers or a writer hold a name, it cannot be locked
// with a plain lock.
func TestRunShared(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	p := f.start("run", "--shared", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	p.hear("have it")
	f.start("run", "--shared", "--try", "a", "--", "echo", "reads too").ends(0, "reads too")
	f.start("run", "--exclusive", "--try", "a", "--", "true").ends(exitRunHeld, "")
	f.start("run", "--try", "a", "--", "true").ends(exitRunNoQuorum, "readers")
	q := f.start("run", "--shared", "a", "--", "sh", "-c", "echo also has it; read x")
	q.hear("also has it")
	f.start("who", "--json", "a").ends(0, `"held":true`)
	f.start("release", "--force", "--yes", "a").ends(exitDanger, "2 clients hold the name: choose a lease with --lease")
	p.stdin.Close()
	p.ends(0, "")
	f.start("release", "--force", "--yes", "a").ends(0, "released on 3 of 3 masters")
	q.ends(exitRunLost, "")
	f.start("run", "--exclusive", "a", "--", "echo", "writes").ends(0, "writes")
	f.start("run", "--shared", "--min-hold", "1s", "a", "--", "true").ends(exitRunUsage, "minimum hold")
}

// As many commands can hold a name simultaneously as the semaphore has slots. All commands must give the same number.
func TestRunSemaphore(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	const script = `echo "have $REDLOCK_NAME, slot $REDLOCK_SLOT"; read x; exit 0`
	two := []string{"--semaphore", "2", "a", "--", "sh", "-c", script}
	p, q := f.start("run", two...), f.start("run", two...)
	p.hear("have a, slot")
	q.hear("have a, slot")
	if p.said() == q.said() {
		t.Errorf("both commands run with the slot %s, want two slots", p.said())
	}
	f.start("run", "--semaphore", "2", "--try", "a", "--", "true").ends(exitRunHeld, "each of 2 slots is held")
	f.start("run", "--semaphore", "3", "a", "--", "true").ends(exitRunNoQuorum, "it knows the name as a semaphore of 2")
	f.start("run", "--try", "a", "--", "true").ends(exitRunNoQuorum, "it knows the name as a semaphore of 2")
	next := f.start("run", two...)
	f.waiting(scripts.Slot{Number: 1, Of: 2}.Name("a"))
	f.waiting(scripts.Slot{Number: 2, Of: 2}.Name("a"))
	for _, text := range []string{`"a": semaphore of 2, 2 slots held`, "slot 1: held by", "slot 2: held by", " waits "} {
		f.start("who", "a").ends(0, text)
	}
	f.start("release", "--force", "--yes", "a").ends(exitDanger, "2 clients hold the name: choose a lease with --lease")
	q.stdin.Close()
	q.ends(0, "")
	next.hear("have a, slot")
	if next.said() != q.said() {
		t.Errorf("the waiter got %s, want %s, which was released", next.said(), q.said())
	}
	f.start("ls").ends(0, "a\n")
	f.start("run", "--semaphore", "0", "a", "--", "true").ends(exitRunUsage, "size of the semaphore is 0")
}

// A command is ended before the time limit of --max-hold has passed.
func TestRunMaxHold(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	began := time.Now()
	p := f.start("run", "--max-hold", "2s", "--grace", "500ms", "a", "--", "sh", "-c",
		"trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	p.ends(exitRunLost, "reaches --max-hold 2s")
	if took := time.Since(began); took < 1400*time.Millisecond || !strings.Contains(p.said(), "cleaned") {
		t.Errorf("the command ended after %v, want at least 1.4s and the line cleaned; the output is\n%s", took, p.said())
	}
	f.start("run", "--max-hold", "1s", "--grace", "1s", "a", "--", "true").ends(exitRunUsage, "longer than --grace")
	f.start("run", "--max-hold", "1h", "a", "--", "true").ends(0, "")
}

// With --quiet only the exit status shows what happened. --conflict-exit-code sets the status for a lock that
// another client holds.
func TestRunQuietWithAConflictExitCode(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	p := f.start("run", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	p.hear("have it")
	q := f.start("run", "--quiet", "--try", "--conflict-exit-code", "0", "a", "--", "echo", "never")
	if q.ends(0, ""); q.said() != "" {
		t.Errorf("the output is %q, want none", q.said())
	}
	f.start("run", "--wait", "100ms", "--conflict-exit-code", "9", "a", "--", "true").ends(9, "held by")
	f.start("run", "-q", "--priority", "7000", "b", "--", "true").ends(exitRunUsage, "7000")
	f.start("run", "-q", "b", "--", "sh", "-c", "echo heard; exit 5").ends(5, "heard")
	p.stdin.Close()
	p.ends(0, "")
}

// The log says why a master is in quarantine, so that nobody looks for a restart that there was not.
func TestLogSaysWhyAMasterIsInQuarantine(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	holder := f.start("run", "a", "--", "sh", "-c", "echo have it; read x")
	holder.hear("have it")
	says := func(i int, reason string) {
		t.Helper()
		holder.hear(fmt.Sprintf("master=%s state=quarantine reason=%q", f.servers[i].Addr(), reason))
	}
	f.do(0, "FLUSHALL")
	says(0, "its admission record was deleted or replaced while it ran")
	host, port, _ := strings.Cut(f.servers[2].Addr(), ":")
	f.do(1, "REPLICAOF", host, port)
	holder.hear("master=" + f.servers[1].Addr() + " state=down")
	f.do(1, "REPLICAOF", "NO", "ONE")
	says(1, "it was a replica before")
}

// Of the waiters of several hosts, those with a higher priority come first.
func TestRunInOrder(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	holder := f.start("run", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	holder.hear("have it")
	first := f.start("run", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	f.waiting("a")
	urgent := f.start("run", "--priority", "5", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	if !redistest.Until(func() bool {
		return f.do(0, "ZCARD", "redlock:{a}:queue") == int64(2) && f.do(1, "ZCARD", "redlock:{a}:queue") == int64(2)
	}) {
		t.Fatal("the commands do not wait in the queue")
	}
	holder.stdin.Close()
	urgent.hear("have it")
	if first.said() != "" {
		t.Error("two commands hold the lock")
	}
	urgent.stdin.Close()
	first.hear("have it")
	first.stdin.Close()
	first.ends(0, "")
}

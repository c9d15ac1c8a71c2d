//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockfile"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A procedure is a section of docs/change.md or docs/night.md. The commands of the section are run literally, in a
// directory with locks.json. Servers that the test has started take the place of 10.0.0.1, 10.0.0.2, and so on.
type procedure struct {
	*deployment
	commands []string
	output   string // the block after the commands; "" if there is none
	program  string
	dir      string
	dead     map[int]bool
	to, from *strings.Replacer // translate the addresses of the document to those of the servers, and back
}

// newProcedure starts n servers, and writes locks.json with the first five as masters.
func newProcedure(t *testing.T, heading string, n int) *procedure {
	t.Helper()
	for _, tool := range []string{"bash", "jq", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	section, found := "", false
	for _, name := range []string{"change", "night"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if _, text, here := strings.Cut(string(page), "\n### "+heading+"\n"); here {
			section, found = text, true
		}
	}
	if !found {
		t.Fatalf("docs/ has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n##")
	block := func(kind string) string {
		_, text, _ := strings.Cut(section, "\n```"+kind+"\n")
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	p := &procedure{
		deployment: newDeployment(t, n, redisproc.Config{}), program: built(t), dir: t.TempDir(), dead: map[int]bool{},
	}
	p.commands, p.output = strings.Split(strings.TrimSpace(block("sh")), "\n"), block("text")
	var to, from []string
	for i, s := range p.servers {
		name := fmt.Sprint("10.0.0.", i+1)
		to = append(to, name+":6379", s.Addr(), name, s.Addr())
		to = append(to, fmt.Sprint("10.1.0.", i+1), strings.Replace(s.Addr(), "127.0.0.1", "localhost", 1))
		from = append(from, s.Addr(), name+":6379")
	}
	p.to, p.from = strings.NewReplacer(to...), strings.NewReplacer(from...)
	writeJSON(t, p.path(), redlock.Configuration{Masters: p.urls[:5]})
	return p
}

func (p *procedure) path() string { return filepath.Join(p.dir, "locks.json") }

// sh runs a line of the document, and returns its output with the addresses of the document.
func (p *procedure) sh(status int, line string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", p.to.Replace(line))
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "PATH="+filepath.Dir(p.program)+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		p.t.Fatalf("%s\nended with %v, want status %d; the output is\n%s", line, err, status, p.from.Replace(out.String()))
	}
	return p.from.Replace(out.String())
}

func (p *procedure) kill(masters ...int) {
	p.t.Helper()
	for _, i := range masters {
		p.dead[i] = true
	}
	p.deployment.kill(masters...)
}

// restart starts masters that were killed, without their data.
func (p *procedure) restart(masters ...int) {
	p.t.Helper()
	p.deployment.restart(masters...)
	for _, i := range masters {
		delete(p.dead, i)
	}
}

// A member is a client that uses locks.json, and holds a lock of its own.
type member struct {
	*redlock.Locker
	kept *redlock.Lock
	shut func()
}

// join starts a client with this label. If follows is false, the client does not apply changes of the file.
func (p *procedure) join(label string, follows bool) *member {
	p.t.Helper()
	l, err := redlockfile.Open(p.path(), redlock.WithLabel(label))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if follows {
		go redlockfile.Follow(ctx, l, p.path())
	}
	m := &member{Locker: l, shut: sync.OnceFunc(func() {
		cancel()
		_ = l.Close() // masters may be down
	})}
	p.t.Cleanup(m.shut)
	within, stop := context.WithTimeout(p.t.Context(), hang)
	defer stop()
	if m.kept, err = l.Lock(within, "kept by "+label); err != nil {
		p.t.Fatal(err)
	}
	out := func(o redlockinfo.Master) bool { return o.State != "voting" && o.State != "connecting" }
	redistest.Until(func() bool { // a new client may have it on a bare quorum, and one of these masters may be killed
		on, _ := clients.HeldOn(m.kept)
		return on >= len(slices.DeleteFunc(admin.Of(l).Masters(), out))
	})
	return m
}

// takeTurns makes the members lock one name in turns. It checks that each call succeeds, that no two members hold
// the name at the same time, and that tokens increase.
func (p *procedure) takeTurns(members ...*member) (turns *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var inside, last atomic.Int64
	turns = new(atomic.Int64)
	for _, m := range members {
		wg.Go(func() {
			for ctx.Err() == nil {
				k, err := m.Lock(ctx, "turns")
				if err != nil {
					if ctx.Err() == nil {
						p.t.Errorf("Lock failed: %v", err)
					}
					return
				}
				if inside.Add(1) > 1 && k.Err() == nil {
					p.t.Error("two clients hold the name at the same time")
				}
				if token := k.Token(); last.Swap(token) >= token {
					p.t.Errorf("the token %d is not larger than the previous token", token)
				}
				turns.Add(1)
				inside.Add(-1)
				err = k.Unlock(context.WithoutCancel(ctx))
				if errors.Is(err, redlock.ErrLost) { // an unconfirmed release is no loss
					p.t.Errorf("a lock was lost: %v", err)
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	p.t.Cleanup(stop)
	return turns, stop
}

// moves waits until the members have taken more than 20 turns, and then calls stop.
func (p *procedure) moves(turns *atomic.Int64, stop func()) {
	p.t.Helper()
	before := turns.Load()
	if !redistest.Until(func() bool { return turns.Load() > before+20 || p.t.Failed() }) {
		p.t.Error("the members do not take turns")
	}
	stop()
}

// pass simulates that a minute has passed, unless -long is set. It waits until each kept lock is on both sets of
// masters, and changes the records as if the epoch had been raised a minute ago.
func (p *procedure) pass(members []*member) {
	p.t.Helper()
	if long.Enabled() {
		return
	}
	carried := func() bool {
		return !slices.ContainsFunc(members, func(m *member) bool {
			on, n := clients.HeldOn(m.kept)
			return on < n-len(p.dead) || n != len(admin.Of(m.Locker).Masters())
		})
	}
	if !redistest.Until(carried) {
		p.t.Fatal("the kept locks are not on both sets of masters")
	}
	p.age(59*time.Second, p.dead)
}

// The documented scripts change the masters of a deployment. Each client holds a lock during the whole change, one of
// them by "redlock run". The other clients also lock one name in turns. The removed masters are killed at the end.
func TestDocumentedChangesOfTheMasters(t *testing.T) {
	t.Parallel()
	for heading, c := range map[string]struct {
		servers      int
		dead, leaves []int
		masters      int
	}{
		"From five masters to seven": {7, nil, nil, 7},
		"Replacing a dead master":    {6, []int{2}, nil, 5},
		"From five masters to three": {5, nil, []int{3, 4}, 3},
	} {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			p := newProcedure(t, heading, c.servers)
			p.sh(exitDone, "redlock admit --config locks.json")
			members := []*member{p.join("web-1", true), p.join("web-2", true)}
			turns, stop := p.takeTurns(members...)
			job := (&votingDeployment{p.deployment, p.program, p.path()}).start("run", "--label", "web-3", "job", "--",
				"sh", "-c", "echo have it; exec sleep 600")
			job.hear("have it")
			p.sh(exitDone, "until redlock who --config locks.json job | grep 'on 5 of 5'; do sleep 0.1; done")
			p.kill(c.dead...)
			for _, line := range p.commands {
				if strings.Contains(line, "--finish") {
					p.pass(members)
				}
				out := p.sh(exitDone, line)
				if plan := strings.HasPrefix(line, "redlock set new.json"); plan && !strings.Contains(out, p.output) {
					t.Errorf("the document shows\n%s\nbut the command prints\n%s", p.output, out)
				} else if plan {
					p.output = "" // the document shows the first plan
				}
			}
			p.kill(c.leaves...)
			p.moves(turns, stop)
			for _, m := range members {
				if on, n := clients.HeldOn(m.kept); m.kept.Err() != nil || on < n/2+1 || n != c.masters {
					t.Errorf("the lock %s has the error %v and is on %d of %d masters, want a majority of %d", m.kept.Name(),
						m.kept.Err(), on, n, c.masters)
				}
				if err := m.kept.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
			job.signal(syscall.SIGTERM)
			job.ends(128+int(syscall.SIGTERM), "")
			t.Logf("there were %d turns", turns.Load())
		})
	}
}

// A client that reaches the same servers at other addresses, by their old names, excludes a client with the old file.
func TestDocumentedChangeOfAddresses(t *testing.T) {
	t.Parallel()
	p := newProcedure(t, "The same servers at other addresses", 5)
	p.sh(exitDone, "redlock admit --config locks.json")
	old := p.join("web-1", true)
	for _, line := range p.commands {
		if out := p.sh(exitDone, line); strings.Contains(out, "failure") {
			t.Errorf("%s prints\n%s", line, out)
		}
	}
	p.moves(p.takeTurns(old, p.join("web-2", true)))
	if err := old.kept.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDocumentedRecoveryOfDownMajority(t *testing.T) {
	t.Parallel()
	if !long.Enabled() {
		t.Skip("needs -long: a master votes after 30 s")
	}
	p := newProcedure(t, "RedlockNoQuorum", 5)
	p.sh(exitDone, "redlock admit --config locks.json")
	m := p.join("web-1", true)
	p.kill(0, 1, 2)
	if out := p.sh(exitNoQuorum, "redlock set locks.json"); !strings.Contains(out, "3 of 5 masters cannot be used") {
		t.Error(out)
	}
	if !redistest.Until(func() bool { return errors.Is(m.kept.Err(), redlock.ErrLost) }) {
		t.Errorf("the lock has the error %v, want ErrLost", m.kept.Err())
	}
	p.restart(0, 1, 2)
	for _, line := range p.commands {
		p.sh(exitDone, line)
	}
	p.join("web-2", true)
	if k, err := m.Lock(t.Context(), "kept by web-1"); err != nil || k.Token() <= m.kept.Token() {
		t.Errorf("locking the lost name again returned %v, %v; want a larger token", k, err)
	}
}

func TestDocumentedRecoveryOfLostMasters(t *testing.T) {
	t.Parallel()
	p := newProcedure(t, "All masters are lost", 5)
	p.sh(exitDone, "redlock admit --config locks.json")
	m := p.join("web-1", true)
	m.shut()
	p.kill(0, 1, 2, 3, 4)
	if out := p.sh(exitNoQuorum, "redlock set locks.json"); !strings.Contains(out, "5 of 5 masters cannot be used") {
		t.Error(out)
	}
	out := p.sh(exitNoQuorum, "redlock check --config locks.json")
	if !strings.Contains(out, "if masters are lost for good, redlock set FILE prints what to do") {
		t.Error(out)
	}
	p.restart(0, 1, 2, 3, 4)
	for _, line := range p.commands {
		p.sh(exitDone, line)
	}
	p.join("web-1", true)
}

// If a majority of the masters is lost, each step of a change prints the documented recovery, and writes nothing.
func TestDocumentedRecoveryOfLostMajority(t *testing.T) {
	t.Parallel()
	p := newProcedure(t, "A majority is lost for good, with its names", 6)
	p.sh(exitDone, "redlock admit --config locks.json")
	m := p.join("web-1", true)
	p.kill(0, 1, 2)
	p.sh(0, `jq '.epoch = 1 | .next = .masters[3:] + ["redis://10.0.0.6"]' locks.json >joint.json`)
	record := fmt.Sprintf("%s", p.do(3, "GET", "redlock:admission"))
	steps := []string{"locks.json", "--yes --raise joint.json", "--yes --finish joint.json", "--yes --abort joint.json"}
	for _, step := range steps {
		out := p.sh(exitNoQuorum, "redlock set "+step)
		for _, line := range append(p.commands[:2:2], "stop all clients, and wait 30s;", "redlock admit --max-ttl 30s") {
			want, _, _ := strings.Cut(line, " #")
			if want = strings.ReplaceAll(strings.TrimSpace(want), " DEL", ":6379 DEL"); !strings.Contains(out, want) {
				t.Errorf("set %s does not print %q, but\n%s", step, want, out)
			}
		}
	}
	if now := fmt.Sprintf("%s", p.do(3, "GET", "redlock:admission")); now != record {
		t.Errorf("the record changed from\n%s\nto\n%s", record, now)
	}
	m.shut()
	for _, line := range p.commands {
		p.sh(exitDone, line)
	}
	p.join("web-1", true)
}

// A wrong record on one master, and the replacement of this record, do not affect locks.
func TestDocumentedReplacementOfAWrongRecord(t *testing.T) {
	t.Parallel()
	p := newProcedure(t, "A wrong record", 5)
	p.sh(exitDone, "redlock admit --config locks.json")
	p.do(1, "DEL", "redlock:admission")
	p.sh(exitDone, "redlock admit redis://10.0.0.2")
	m := p.join("web-1", true)
	for i, line := range p.commands {
		if strings.HasPrefix(line, "until ") && !long.Enabled() { // takes 30 s
			line = "redlock status --config locks.json | grep '10.0.0.2:6379 .*quarantine, '"
			line = strings.ReplaceAll(line, "10.0.0.2:6379 ", p.servers[1].Addr()+" ")
		}
		if out := p.sh(exitDone, line); i == 0 && !strings.Contains(out, "10.0.0.2:6379") {
			t.Errorf("check does not name the master:\n%s", out)
		}
	}
	if err := m.kept.Err(); err != nil {
		t.Error(err)
	}
	p.join("web-2", true)
}

// A client that does not use the file prevents the next step of a change. The change is cancelled before or after that
// step. No lock ends, except those of that client if the step was forced.
func TestDocumentedEndOfAStuckChange(t *testing.T) {
	t.Parallel()
	for _, raised := range []bool{false, true} {
		t.Run(fmt.Sprint("raised ", raised), func(t *testing.T) {
			t.Parallel()
			p := newProcedure(t, "A change that is stuck", 6)
			p.sh(exitDone, "redlock admit --config locks.json && redlock admit redis://10.0.0.6")
			members := []*member{p.join("web-1", true), p.join("web-2", true)}
			turns, stop := p.takeTurns(members...)
			stray := p.join("stray", false)
			p.sh(0, `jq '.epoch += 1 | .next = .masters[1:] + ["redis://10.0.0.6"]' locks.json >new.json`)
			p.sh(0, "mv new.json locks.json")
			p.follow(members...)
			out := p.sh(exitDanger, "redlock set --raise --yes --timeout 1s locks.json")
			if !strings.Contains(out, "not every client uses this file yet: stray (epoch 0);") {
				t.Error(out)
			}
			late := "; not yet: stray (epoch 0)"
			if raised {
				late = ", or is refused: stray (epoch 0)"
				out := p.sh(exitDone, "redlock set --raise --force --yes locks.json")
				if !strings.Contains(out, "immediately; clients that do not use this file: stray (epoch 0)\n"+
					"a client that does not use this file can then acquire no lock, and its locks end\n") {
					t.Error(out)
				}
			}
			for i, line := range p.commands {
				out := p.sh(exitDone, line)
				if i == 0 && !strings.Contains(out, "every client uses this file"+late) {
					t.Error(out)
				}
			}
			for _, m := range append(members, stray) {
				if !redistest.Until(func() bool {
					c := admin.Of(m.Locker).Configuration()[0]
					return c.Epoch == 2 && len(c.Masters) == 5 && len(c.Next) == 0
				}) {
					t.Errorf("%s uses %+v, want epoch 2 with five masters", m.kept.Name(), admin.Of(m.Locker).Configuration())
				}
			}
			p.moves(turns, stop)
			if !raised {
				members = append(members, stray)
			}
			for _, m := range members {
				if err := m.kept.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A majority of the next masters is lost. Before --raise, clients that are started again with the old file can lock
// as before. After --raise, empty servers take the place of the lost masters, and the change is cancelled.
func TestDocumentedWaysBackFromLostNextMasters(t *testing.T) {
	t.Parallel()
	for _, raised := range []bool{false, true} {
		t.Run(fmt.Sprint("raised ", raised), func(t *testing.T) {
			t.Parallel()
			if raised && !long.Enabled() {
				t.Skip("needs -long: a master votes after 30 s")
			}
			p := newProcedure(t, "A change that is stuck", 8)
			p.sh(exitDone, "redlock admit --config locks.json")
			p.sh(exitDone, "redlock admit redis://10.0.0.6 redis://10.0.0.7 redis://10.0.0.8")
			m := p.join("web-1", true)
			p.sh(0, `cp locks.json old.json`)
			p.sh(0, `jq '.epoch = 1 | .next = ["redis://10.0.0.6", "redis://10.0.0.7", "redis://10.0.0.8"]' old.json >new.json`)
			p.sh(0, "mv new.json locks.json")
			p.follow(m)
			want := "1. start the clients again with the file of epoch 0"
			if raised {
				p.sh(exitDone, "redlock set --raise --yes locks.json")
				want = "1. stop all clients, and wait 30s"
			}
			p.kill(5, 6)
			for _, step := range []string{"", "--yes --raise ", "--yes --abort "} {
				if out := p.sh(exitNoQuorum, "redlock set "+step+"locks.json"); !strings.Contains(out, want) {
					t.Error(out)
				}
			}
			if !raised {
				m.shut()
				p.sh(0, "mv old.json locks.json")
				p.join("web-1", true)
				return
			}
			p.restart(5, 6)
			p.sh(exitDone, "until redlock status --config locks.json; do sleep 1; done")
			for _, line := range p.commands {
				p.sh(exitDone, line)
			}
			p.join("web-2", true)
			if _, err := m.Lock(t.Context(), "orders"); err != nil {
				t.Error(err)
			}
		})
	}
}

// follow waits until the members use the joint configuration of epoch 1.
func (p *procedure) follow(members ...*member) {
	p.t.Helper()
	for _, m := range members {
		if !redistest.Until(func() bool { return admin.Of(m.Locker).Configuration()[0].Epoch == 1 }) {
			p.t.Errorf("%s: the client does not use the file of epoch 1", m.kept.Name())
		}
	}
}

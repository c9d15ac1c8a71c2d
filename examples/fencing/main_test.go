//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

// bound is the maximum time between the resumption of a process and the end of the context of its lost lock.
const bound = 100 * time.Millisecond

// A process is stopped until its TTL has expired while it holds the lock, and another client acquires the lock and
// writes. When the process resumes, its context ends within 100 ms, as the process measures, and the table refuses
// its late write.
func TestStoppedHolderDetectsLossAndIsFenced(t *testing.T) {
	_, urls := testmasters.Start(t, 5)
	other := testmasters.Locker(t, urls)
	path := filepath.Join(t.TempDir(), "stock.db")
	program := start(t, path, append([]string{"apples"}, urls...))
	var first int64
	program.expect("written, token %d", &first)

	program.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock, err := other.Lock(ctx, "apples") // waits until the TTL of the stopped process has expired
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock(ctx)
	table, err := openStore(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer table.close()
	if err := table.set(ctx, "apples", 2, lock.Token()); err != nil || lock.Token() <= first {
		t.Fatalf("the write of the new holder failed, or its token %d is not larger than %d: %v", lock.Token(), first, err)
	}

	program.signal(syscall.SIGCONT)
	woken := time.Now()
	var late int64
	program.expect("ended %d us after waking: redlock: lock \"apples\": the lock was lost", &late)
	t.Logf("the context ended %d us after waking; the report came after %v", late, time.Since(woken))
	if time.Duration(late)*time.Microsecond > bound {
		t.Errorf("the context ended %d us after waking, more than %v", late, bound)
	}
	if line := program.line(); !strings.Contains(line, errFenced.Error()) {
		t.Errorf("the late write was not refused: %q", line)
	}
	if err := program.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v: %s", err, program.errors.String())
	}
	if amount, token, err := table.get(ctx, "apples"); amount != 2 || token != lock.Token() || err != nil {
		t.Errorf("the table contains %d with token %d, %v; want 2 with %d", amount, token, err, lock.Token())
	}
	if lock.Err() != nil {
		t.Errorf("the new holder has lost its lock: %v", lock.Err())
	}
}

// A process is a running copy of the program in this directory.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Scanner
	errors strings.Builder
}

func start(t *testing.T, path string, args []string) *process {
	t.Helper()
	program := filepath.Join(t.TempDir(), "fencing")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // kills a program that hangs
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, program, append([]string{path}, args...)...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr, p.out = &p.errors, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill() // the test has failed
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) line() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the output of the program has ended: %v\n%s", p.out.Err(), p.errors.String())
	}
	return p.out.Text()
}

func (p *process) expect(format string, values ...any) {
	p.t.Helper()
	line := p.line()
	if _, err := fmt.Sscanf(line, format, values...); err != nil {
		p.t.Fatalf("the program wrote %q, want %q: %v", line, format, err)
	}
}

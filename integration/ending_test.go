package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endingEnv says how an inner run of the tests must end.
const endingEnv = "REDLOCK_TEST_ENDING"

// endings are the ways in which a run of the tests can end.
var endings = map[string]struct {
	fails bool
	do    func(p *os.Process) error // applied to a run that waits
}{
	"success":   {},
	"failure":   {fails: true},
	"panic":     {fails: true},
	"interrupt": {fails: true, do: interrupt},
	"kill":      {fails: true, do: (*os.Process).Kill},
}

// interrupt sends the signal of a terminal. If this run ignores it, and so do its children, interrupt sends the signal
// of a supervisor.
func interrupt(p *os.Process) error {
	if signal.Ignored(os.Interrupt) {
		return p.Signal(syscall.SIGTERM)
	}
	return p.Signal(os.Interrupt)
}

// A run of the tests leaves no container, network, server or other process, however it ends.
func TestNothingIsLeftHoweverARunEnds(t *testing.T) {
	if os.Getenv(endingEnv) != "" {
		return
	}
	masters(t, 1) // determines the kind of masters
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := startInner(t, name)
			if ending.do != nil {
				if err := ending.do(in.cmd.Process); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = io.Copy(io.Discard, in.out)
			if err := in.cmd.Wait(); (err != nil) != ending.fails {
				t.Errorf("the run ended with %v", err)
			}
			in.nothingLeft(t)
		})
	}
}

// An inner is a run of TestInner in a separate process, which has reported its resources.
type inner struct {
	cmd     *exec.Cmd
	out     io.Reader
	session string   // of its containers; "" if it has none
	urls    []string // of its masters
	pids    []int    // of its processes
}

func startInner(t *testing.T, ending string) *inner {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in := &inner{cmd: exec.Command(exe, "-test.run=^TestInner$", "-test.v")}
	in.cmd.Env = append(os.Environ(), endingEnv+"="+ending)
	stdin, err := in.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := in.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := in.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = in.cmd.Process.Kill() // it has already ended, unless the test failed
		_ = in.cmd.Wait()
	})
	r := bufio.NewReader(out)
	in.out = r
	var said strings.Builder
	for {
		line, err := r.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("the inner run did not report its resources: %v: %s", err, said.String())
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "session":
			in.session = rest
		case "master":
			in.urls = append(in.urls, rest)
		case "process":
			pid, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatal(err)
			}
			in.pids = append(in.pids, pid)
		case "ready":
			return in
		}
	}
}

// TestInner is the inner run of the test above. Without endingEnv it only starts two masters and a worker.
func TestInner(t *testing.T) {
	list := masters(t, 2)
	a := workerArgs{ID: "w", Dir: t.TempDir(), URLs: urls(list), TTL: scenarioTTL}
	w := startWorker(t, a)
	if engine != nil {
		fmt.Println("\nsession", engine.session)
		fmt.Println("process", theReaper.cmd.Process.Pid)
	}
	for _, m := range list {
		fmt.Println("\nmaster", m.URL())
	}
	fmt.Println("process", w.Cmd.Process.Pid)
	fmt.Println("ready")
	switch os.Getenv(endingEnv) {
	case "failure":
		t.Fatal("as requested")
	case "panic":
		panic("as it was told")
	case "interrupt", "kill":
		_, _ = io.Copy(io.Discard, os.Stdin) // until the outer test ends it
	}
	w.Finish()
}

func (in *inner) nothingLeft(t *testing.T) {
	t.Helper()
	x, ended := &deployment{T: t}, time.Now()
	x.eventually(hang, func() string {
		for _, u := range in.urls {
			if ping(u, time.Second) == nil {
				return u + " still answers"
			}
		}
		for _, pid := range in.pids {
			if running(pid) {
				return fmt.Sprintf("process %d still runs", pid)
			}
		}
		if in.session == "" {
			return ""
		}
		ago := time.Since(ended)
		left, err := engine.left(in.session, ago > hang/2)
		if err != nil {
			return err.Error()
		}
		if left != "" && ago > hang/2 {
			t.Errorf("%v after the end %s", ago.Round(time.Second), left)
			return ""
		}
		return left
	})
}

// running reports whether a process is running. It returns false on systems that do not support the check.
func running(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") // a zombie has ended
}

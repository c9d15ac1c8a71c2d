//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var builtIn string // directory of the program that was built for the tests

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		supervise(os.Args[2:])
	}
	if name := os.Getenv(jobVariable); name != "" {
		os.Exit(runJob(name))
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests mostly wait for processes
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "redlock-command-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "redlock")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// built returns the path of the program.
func built(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A votingDeployment has three masters that vote, the built program, and a configuration file with the masters.
type votingDeployment struct {
	*deployment
	program, config string
}

func newVotingDeployment(t *testing.T) *votingDeployment {
	t.Helper()
	f := newAdmitted(t, 3)
	return &votingDeployment{f, built(t), setText(t, f.urls)}
}

// ask returns a command that runs the program with the configuration file.
func (f *votingDeployment) ask(verb string, args ...string) *exec.Cmd {
	cmd := exec.Command(f.program, append([]string{verb, "--config", f.config}, args...)...)
	cmd.WaitDelay = hang
	return cmd
}

// A process is a running program. Tests can wait for the output of the program.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

// Write collects the output of the program.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	select {
	case p.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// start starts the program, and ends it at the end of the test.
func (f *votingDeployment) start(verb string, args ...string) *process {
	f.t.Helper()
	p := &process{t: f.t, cmd: f.ask(verb, args...), wrote: make(chan struct{}, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

// hear waits until the program has written text.
func (p *process) hear(text string) {
	p.t.Helper()
	bound := time.After(hang)
	for !strings.Contains(p.said(), text) {
		select {
		case <-p.wrote:
		case <-bound:
			p.t.Fatalf("the program has not written %q:\n%s", text, p.said())
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits until the program ends. It ends the test unless the exit status is status and the output contains want.
func (p *process) ends(status int, want string) {
	p.t.Helper()
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status || !strings.Contains(p.said(), want) {
		p.t.Fatalf("%q: status %d, want %d; want %q in the output\n%s", p.cmd.Args, got, status, want, p.said())
	}
}

// A tomb is a named pipe. Its reader notices when all processes that hold the writing end have ended.
type tomb struct {
	t    *testing.T
	path string
	end  chan string // receives the output when no process holds the pipe any more
}

func newTomb(t *testing.T) *tomb {
	t.Helper()
	b := &tomb{t, filepath.Join(t.TempDir(), "tomb"), make(chan string, 1)}
	if err := syscall.Mkfifo(b.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		text, _ := os.ReadFile(b.path) // opening waits for a writer, and reading waits for the end of all writers
		b.end <- string(text)
	}()
	t.Cleanup(func() { // unblock the reader if no process has opened the pipe
		if w, err := os.OpenFile(b.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
	})
	return b
}

// closes waits until no process holds the pipe, and returns the output.
func (b *tomb) closes() (text string) {
	b.t.Helper()
	select {
	case text := <-b.end:
		return text
	case <-time.After(hang):
		b.t.Fatal("a process of the command's group is still alive")
		return ""
	}
}

//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// actionsSteps returns the scripts of the steps of GitHub Actions in docs/run.md.
func actionsSteps(t *testing.T) (scripts []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	for step := range strings.SplitSeq("\n"+block, "\n- ") {
		if _, script, found := strings.Cut(step, "run: "); found {
			script = regexp.MustCompile(`\n +`).ReplaceAllString(strings.TrimSpace(script), "\n")
			scripts = append(scripts, strings.TrimPrefix(script, "|\n"))
		}
	}
	if len(scripts) != 3 {
		t.Fatalf("docs/run.md has %d steps of GitHub Actions, want 3: %q", len(scripts), scripts)
	}
	return scripts
}

// The documented steps of GitHub Actions hold the lock over all steps, as a worker runs them: it starts a shell for
// each step, and reads GITHUB_ENV after it. The lock ends with its last step, or with the worker.
func TestLockOverStepsOfActions(t *testing.T) {
	t.Parallel()
	steps := actionsSteps(t)
	for _, c := range []struct {
		name   string
		deploy string // what the second step runs
		killed bool
	}{
		{"all steps", `redlock who --config locks.json --json deploy | grep "\"token\":$2[,}]"`, false},
		{"the worker is killed", "echo deploying; exec sleep 600", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newVotingDeployment(t)
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(f.config)
			if err != nil {
				t.Fatal(err)
			}
			write("locks.json", string(text))
			write("deploy", "#!/bin/sh\n"+c.deploy+"\n")
			worker := "export GITHUB_ENV=$PWD/env\nstatus=0\n: >env\n"
			for i, step := range steps {
				name := fmt.Sprintf("step%d.sh", i+1)
				write(name, step)
				worker += fmt.Sprintf("bash -e %s || status=1\nwhile read -r line; do export \"$line\"; done <env\n", name)
			}
			write("worker", worker+"exit $status")
			p := &process{t: t, cmd: exec.Command("bash", "worker"), wrote: make(chan struct{}, 1)}
			p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = dir, p, p, hang
			p.cmd.Env = append(os.Environ(), "PATH="+dir+":"+filepath.Dir(f.program)+":"+os.Getenv("PATH"))
			p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := p.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); _ = p.cmd.Wait() })
			if c.killed {
				p.hear("deploying")
				f.start("run", "--try", "deploy", "--", "true").ends(exitRunHeld, "held by")
				_ = p.cmd.Process.Kill()
			} else {
				p.ends(0, `"token":`)
			}
			f.free("deploy")
		})
	}
}

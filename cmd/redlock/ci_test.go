//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// ciSteps returns the scripts of a block of docs/run.md: the matches of step in the first block in that language with
// that text. It ends the test unless there are n.
func ciSteps(t *testing.T, language, text, step string, n int) (scripts []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ = bytes.Cut(page, []byte("\n#### Over several steps of a CI job\n"))
	for block := range strings.SplitSeq(string(page), "\n```"+language+"\n") {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, text) {
			continue
		}
		for _, match := range regexp.MustCompile(step).FindAllStringSubmatch(block, -1) {
			scripts = append(scripts, strings.Join(match[1:], ""))
		}
		break
	}
	if len(scripts) != n {
		t.Fatalf("docs/run.md has %d steps with %q, want %d: %q", len(scripts), text, n, scripts)
	}
	return scripts
}

// deployHolds is the program "deploy" of the documents. It requires that the lock is held with the token of --fence.
const deployHolds = `redlock who --config locks.json --json deploy | grep "\"token\":$2[,}]"`

// A ciJob is a job of a CI system in a workspace that has locks.json and the program "deploy".
type ciJob struct {
	*votingDeployment
	dir string
	env []string
}

func newCIJob(t *testing.T, deploy string) *ciJob {
	t.Helper()
	f := newVotingDeployment(t)
	dir := t.TempDir()
	j := &ciJob{f, dir, append(os.Environ(), "PATH="+dir+":"+filepath.Dir(f.program)+":"+os.Getenv("PATH"))}
	text, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	j.write("locks.json", string(text))
	j.write("deploy", "#!/bin/sh\n"+deploy+"\n")
	return j
}

func (j *ciJob) write(name, text string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o700); err != nil {
		j.t.Fatal(err)
	}
}

// begin starts a program in the workspace, in a process group of its own.
func (j *ciJob) begin(env []string, args ...string) *process {
	j.t.Helper()
	p := &process{t: j.t, cmd: exec.Command(args[0], args[1:]...), wrote: make(chan struct{}, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = j.dir, p, p, hang
	p.cmd.Env = append(j.env, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); _ = p.cmd.Wait() })
	return p
}

// held requires that a client holds the lock.
func (j *ciJob) held() {
	j.t.Helper()
	j.start("run", "--try", "--wait", "1m", "deploy", "--", "true").ends(exitRunHeld, "held by")
}

// The documented steps of GitHub Actions hold the lock over all steps, as a worker runs them: it starts a shell for
// each step, and reads GITHUB_ENV after it. The lock ends with its last step, or with the worker.
func TestLockOverStepsOfActions(t *testing.T) {
	t.Parallel()
	steps := ciSteps(t, "yaml", "GITHUB_ENV", `(?m)^[- ] run: (?:([^|\n].*)|\|\n((?: {4}.*\n)+))`, 3)
	worker := "export GITHUB_ENV=$PWD/env\nstatus=0\n: >env\n"
	for i := range steps {
		worker += fmt.Sprintf("bash -e step%d || status=1\nwhile read -r line; do export \"$line\"; done <env\n", i)
	}
	start := func(t *testing.T, deploy string) (*ciJob, *process) {
		t.Parallel()
		j := newCIJob(t, deploy)
		for i, step := range steps {
			j.write(fmt.Sprint("step", i), step)
		}
		j.write("worker", worker+"exit $status")
		return j, j.begin(nil, "bash", "worker")
	}
	t.Run("all steps", func(t *testing.T) {
		j, p := start(t, deployHolds)
		p.ends(0, `"token":`)
		j.free("deploy")
	})
	t.Run("the worker is killed", func(t *testing.T) {
		j, p := start(t, "echo deploying; exec sleep 600")
		p.hear("deploying")
		j.held()
		p.signal(syscall.SIGKILL)
		j.free("deploy")
	})
}

// The documented lines of GitLab CI hold the lock while they run, as the runner runs them: in a subshell of a shell
// that leads a process group. A cancelled job gets TERM. If the runner has started the shell as another user, by su, su
// kills the shell alone, and the lines run on.
func TestLockOverLinesOfGitLab(t *testing.T) {
	t.Parallel()
	lines := ciSteps(t, "yaml", "script:", `(?m)^  - (.+?)(?: # .*)?$`, 4)
	start := func(t *testing.T, deploy string) (*ciJob, *process) {
		t.Parallel()
		j := newCIJob(t, deploy)
		j.write("lines", strings.Join(lines, "\n"))
		const trap = "trap 'exit 1' TERM\n"
		j.write("job", trap+"set -eo pipefail\n("+trap+"eval \"$(cat lines)\") </dev/null\nexit 0\n")
		return j, j.begin(nil, "bash", "job")
	}
	t.Run("all lines", func(t *testing.T) {
		j, p := start(t, deployHolds)
		p.ends(0, `"token":`)
		j.free("deploy")
	})
	t.Run("a line fails", func(t *testing.T) {
		j, p := start(t, deployHolds+"; exit 3")
		p.ends(3, `"token":`)
		j.free("deploy")
	})
	t.Run("the job is cancelled", func(t *testing.T) {
		j, p := start(t, "echo deploying; exec sleep 600")
		p.hear("deploying")
		j.held()
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		p.ends(1, "")
		j.free("deploy")
	})
	t.Run("the shell is killed alone", func(t *testing.T) {
		j, p := start(t, "echo deploying; while [ ! -e go ]; do sleep 0.05; done; "+deployHolds)
		p.hear("deploying")
		p.signal(syscall.SIGKILL)
		_, _ = p.cmd.Process.Wait()
		j.held()
		j.write("go", "")
		p.hear(`"token":`)
		j.free("deploy")
	})
}

// The documented steps of Jenkins hold the lock over all steps, as the plugin durable-task runs them: a process in the
// background starts a shell, which has the cookie of the workspace. If a step is stopped, the processes with that
// cookie get TERM, but the lock is held until the last step. At the end of the build, all its processes get TERM.
func TestLockOverStepsOfJenkins(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("an agent finds the processes of a build only by /proc")
	}
	steps := ciSteps(t, "groovy", "stage", `sh '(.+)'`, 3)
	t.Run("all steps", func(t *testing.T) {
		t.Parallel()
		b := newJenkinsBuild(t, steps, deployHolds)
		b.run("lock", 0)
		b.run("deploy", 0)
		b.held()
		b.run("unlock", 0)
		b.free("deploy")
	})
	t.Run("a step is stopped", func(t *testing.T) {
		t.Parallel()
		b := newJenkinsBuild(t, steps, "echo deploying; exec sleep 600")
		b.run("lock", 0)
		wait := b.step("deploy")
		redistest.Eventually(t, "the step runs", func() bool { return strings.Contains(b.log("deploy"), "deploying\n") })
		b.stop(b.workspace)
		wait(128 + int(syscall.SIGTERM))
		b.held()
		b.run("unlock", 0)
		b.free("deploy")
	})
	t.Run("the build ends without unlock", func(t *testing.T) {
		t.Parallel()
		b := newJenkinsBuild(t, steps, deployHolds)
		b.run("lock", 0)
		b.held()
		b.stop(b.node)
		b.free("deploy")
		b.run("unlock", exitRunLost)
	})
}

// A jenkinsBuild runs its steps in a workspace.
type jenkinsBuild struct {
	*ciJob
	steps           map[string]string
	workspace, node string // the variables by which an agent finds the processes of a workspace, and of a build
}

func newJenkinsBuild(t *testing.T, steps []string, deploy string) *jenkinsBuild {
	t.Helper()
	j := newCIJob(t, deploy)
	return &jenkinsBuild{j, map[string]string{"lock": steps[0], "deploy": steps[1], "unlock": steps[2]},
		"JENKINS_SERVER_COOKIE=durable-" + j.dir, "JENKINS_NODE_COOKIE=" + j.dir}
}

// step starts a step, and returns a function that waits for its exit status.
func (b *jenkinsBuild) step(step string) (wait func(status int)) {
	b.t.Helper()
	b.write(step+".sh", b.steps[step])
	b.write("wrapper", strings.NewReplacer("STEP", step, "COOKIE", b.workspace).Replace(
		"(COOKIE sh -xe STEP.sh >STEP.log 2>&1; echo $? >STEP.tmp; mv STEP.tmp STEP.result) >&- 2>&- &"))
	b.begin([]string{b.node, "JENKINS_SERVER_COOKIE=please-do-not-kill-me"}, "nohup", "sh", "wrapper").ends(0, "")
	return func(status int) {
		b.t.Helper()
		var result []byte
		redistest.Eventually(b.t, "the step ends", func() (ended bool) {
			var err error
			result, err = os.ReadFile(filepath.Join(b.dir, step+".result"))
			return err == nil
		})
		if got := strings.TrimSpace(string(result)); got != strconv.Itoa(status) {
			b.t.Fatalf("the step %q ended with status %s, want %d:\n%s", step, got, status, b.log(step))
		}
	}
}

func (b *jenkinsBuild) run(step string, status int) { b.t.Helper(); b.step(step)(status) }

// log returns what a step has written.
func (b *jenkinsBuild) log(step string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir, step+".log"))
	return string(text)
}

// stop sends TERM to all processes with a variable in their environment.
func (b *jenkinsBuild) stop(variable string) {
	b.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		b.t.Fatal("no process in /proc")
	}
	for _, path := range paths {
		text, _ := os.ReadFile(path) // the process may have ended, or belong to another user
		if slices.Contains(strings.Split(string(text), "\x00"), variable) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

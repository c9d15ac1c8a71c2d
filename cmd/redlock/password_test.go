//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// A restrictedDeployment has three masters with an ACL user "app", and a directory for the file of --config.
type restrictedDeployment struct {
	*deployment
	dir string
}

func newRestrictedDeployment(t *testing.T) *restrictedDeployment {
	t.Helper()
	f := &restrictedDeployment{newAdmitted(t, 3), t.TempDir()}
	f.all("ACL", "SETUSER", "app", "on", "~*", "&*", "+@all")
	return f
}

// allow replaces the password of the user.
func (f *restrictedDeployment) allow(password string) {
	f.t.Helper()
	f.all("ACL", "SETUSER", "app", "resetpass", ">"+password)
}

func (f *restrictedDeployment) write(name, text string, mode os.FileMode) (path string) {
	f.t.Helper()
	path = filepath.Join(f.dir, name)
	if err := writeProgram(path, []byte(text), mode); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// writeProgram writes a file that is executed. A program that is running, or that a process of a parallel test has open
// for writing, is busy.
func writeProgram(path string, text []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock() // no child inherits the open file
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// config writes the file for --config with these settings.
func (f *restrictedDeployment) config(settings map[string]any) (path string) {
	f.t.Helper()
	settings["masters"], settings["user"] = f.urls, "app"
	path = filepath.Join(f.dir, "locks.json")
	writeJSON(f.t, path, settings)
	return path
}

// fails requires that the command fails with an output that contains want and does not contain secret.
func fails(t *testing.T, want, secret string, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, &out, &errs)
	said := out.String() + errs.String()
	if code == exitDone || !strings.Contains(said, want) || strings.Contains(said, secret) {
		t.Errorf("%q: code %d, want an error with %q and without %q\n%s", args, code, want, secret, said)
	}
}

// The file with the password is read, and the command that prints it is run, for each connection.
func TestPasswordOfEachConnection(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-pass"
	f := newRestrictedDeployment(t)
	path := f.config(map[string]any{"passwordFile": "pass"}) // relative to the directory of the configuration file
	file := f.write("pass", secret+"\n", 0o600)
	f.allow(secret)
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", path)
	f.allow(secret + "-2")
	fails(t, "WRONGPASS", secret, "status", "--config", path, "--timeout", "5s")
	f.write("pass", secret+"-2\r\n", 0o600)
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", path)

	for _, c := range []struct{ content, want string }{
		{"\n", "empty"},
		{secret + "\nmore\n", "more than one line"},
		{strings.Repeat(secret, 64<<10/len(secret)+1), "more than 65536 bytes"},
	} {
		f.write("pass", c.content, 0o600)
		fails(t, "passwordFile "+file+": "+c.want, secret, "status", "--config", path, "--timeout", "5s")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	fails(t, "open "+file+": no such file", secret, "status", "--config", path, "--timeout", "5s")

	f.allow(secret)
	path = f.config(map[string]any{"passwordCommand": []string{"./password", secret}})
	program := filepath.Join(f.dir, "password")
	for _, c := range []struct{ script, want string }{
		{`echo "$1"`, ""},
		{`echo "$1"; echo "$1" >&2; exit 3`, "passwordCommand " + program + ": exit status 3"},
		{`echo "$1"; echo "$1"`, program + ": more than one line"},
		{`while echo "$1"; do :; done`, program + ": more than 65536 bytes"},
	} {
		f.write("password", "#!/bin/sh\n"+c.script+"\n", 0o700)
		if c.want == "" {
			call(t, exitDone, "3 of 3 masters vote", "status", "--config", path)
		} else {
			fails(t, c.want, secret, "status", "--config", path)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	fails(t, program+": no such file", secret, "status", "--config", path)
	path = f.config(map[string]any{"passwordCommand": []string{"echo", secret}}) // found in PATH
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", path)
}

func TestSourcesOfThePasswordExcludeEachOther(t *testing.T) {
	t.Parallel()
	f := &restrictedDeployment{&deployment{t: t, urls: []string{"redis://127.0.0.1:1"}}, t.TempDir()}
	for want, settings := range map[string]map[string]any{
		"exclude each other":                  {"password": "secret-word", "passwordFile": "f"},
		"exclude each other: use one of them": {"passwordFile": "secret-word", "passwordCommand": []string{"c"}},
		"names no program":                    {"passwordCommand": []string{}},
		"names no program\n":                  {"passwordCommand": []string{"", "secret-word"}},
	} {
		fails(t, want, "secret-word", "status", "--config", f.config(settings))
	}
}

// "redlock run" kills the descendants of its command, but does not kill or reap password commands.
func TestRunLeavesPasswordCommandsAlone(t *testing.T) {
	t.Parallel()
	f := newRestrictedDeployment(t)
	f.allow("secret-word")
	calls := f.write("calls", "", 0o600)
	f.write("password", fmt.Sprintf("#!/bin/sh\necho >>%s\nsleep 0.05\necho secret-word\n", calls), 0o700)
	v := &votingDeployment{f.deployment, built(t), f.config(map[string]any{"passwordCommand": []string{"./password"}})}
	p := v.start("run", "job", "--", "sh", "-c",
		"echo started; while [ ! -e "+f.dir+"/stop ]; do (true &); sleep 0.01; done; echo ended")
	p.hear("started")
	count := func() int {
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	const each = 2 // connections to each master, for calls and for messages
	connected := func(i int) {
		list := ""
		if !redistest.Until(func() bool {
			list = fmt.Sprintf("%s", f.do(i, "CLIENT", "LIST"))
			return strings.Count(list, "user=app") == each
		}) {
			t.Fatalf("master %d does not have %d connections of the user:\n%s\n%s", i, each, list, p.said())
		}
	}
	for i := range f.urls {
		connected(i)
	}
	for range 2 { // each new connection runs the password command once
		for i := range f.urls {
			before := count()
			f.do(i, "CLIENT", "KILL", "USER", "app")
			connected(i)
			if n := count() - before; n > each {
				t.Errorf("the password command ran %d times for %d connections", n, each)
			}
		}
	}
	f.write("stop", "", 0o600)
	p.ends(0, "ended")
	if strings.Contains(p.said(), "cannot be killed") {
		t.Error(p.said())
	}
}

// reapOrphans does not reap password commands, so that their callers get the exit status.
func TestHelpersAreNotReaped(t *testing.T) {
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				reapOrphans(0)
			}
		}
	}()
	for range 100 {
		if err := helpers.wait(exec.Command("true")); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	<-ended
}

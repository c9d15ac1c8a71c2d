package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A brokenWriter fails after some bytes.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// A command whose output cannot be written ends with a status of its own.
func TestUnwrittenOutput(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 3)
	f.holder("a")
	for _, c := range []struct {
		status int
		args   []string
	}{
		{exitNoOutput, append([]string{"ls"}, f.urls...)},
		{exitNoOutput, append([]string{"ls", "--json"}, f.urls...)},
		{exitNoOutput, append([]string{"check"}, f.urls...)},
		{exitNoOutput, append(append([]string{"who"}, f.urls...), "a")},
		{exitNoOutput, []string{"help"}},
		{exitNoOutput, []string{"ls", "--help"}},
		{exitNoOutput, []string{"man"}},
		{exitNoOutput, []string{"--version"}},
		{exitNoOutput, []string{"completion", "bash"}},
		{exitRunNoOutput, []string{"run", "--help"}},
	} {
		var errs bytes.Buffer
		code := run(c.args, &brokenWriter{left: 1}, &errs)
		if want := "the output is incomplete: no space left on device"; code != c.status ||
			strings.Count(errs.String(), want) != 1 {
			t.Errorf("%q ended with code %d and printed %q, want code %d and %q once", c.args, code, errs.String(), c.status,
				want)
		}
	}
}

// A time limit that no operation can keep is a usage error.
func TestTimeLimitsMustBePositive(t *testing.T) {
	t.Parallel()
	const url = "redis://127.0.0.1:1"
	file := setText(t, []string{url})
	for _, limit := range []string{"0", "-1s"} {
		for _, args := range [][]string{
			{"check", url}, {"status", url}, {"admit", url}, {"ls", url}, {"who", url, "a"}, {"set", file},
			{"release", "--masters", url, "--force", "a"}, {"quarantine", "--master", "a:1", url}, {"max-ttl", url},
		} {
			args = append([]string{args[0], "--timeout", limit}, args[1:]...)
			call(t, exitUsage, "must be greater than 0", args...)
		}
	}
}

func TestVersionAndTopics(t *testing.T) {
	t.Parallel()
	_, version := command("version")
	for _, flag := range []string{"--version", "-version"} {
		if code, text := command(flag); code != exitDone || text != version || text == "" {
			t.Errorf("%s ended with code %d and printed %q, want %q", flag, code, text, version)
		}
	}
	call(t, exitRunUsage, "redlock unlock: there are 0 arguments: give one handle", "unlock")
	call(t, exitUsage, "redlock ls: there are 2 prefixes: give one", "ls", "redis://127.0.0.1:1", "a", "b")
	call(t, exitUsage, "name the shell", "completion")
	call(t, exitUsage, "unknown command", "completion", "tcsh")
	call(t, exitUsage, `unknown command "nothing"`, "help", "nothing")
	call(t, exitDone, "Acquires the lock of NAME", "help", "run")
}

// Every command has help texts of at most 100 columns, and an example. H110: each flag has the default that its help
// shows; if two commands shared a variable, the defaults could differ.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%q has no short text, no long text or no example", c.CommandPath())
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if c.Name() == "man" || c.Name() == "help" {
			args = []string{"help", c.Name()}
		}
		_, text := command(args...)
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 100 {
				t.Errorf("%s has a line of %d columns: %s", c.CommandPath(), utf8.RuneCountInString(line), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.String() != f.DefValue {
				t.Errorf("%s --%s is %s, but its help says %s", c.CommandPath(), f.Name, f.Value, f.DefValue)
			}
		})
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(rootCommand(&app{console: console{stdout: io.Discard, stderr: io.Discard}}))
	call(t, exitDone, "Examples:", "check", "-help")
	call(t, exitUsage, `unknown command "chekc"`, "chekc")
}

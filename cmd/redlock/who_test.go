//go:build unix

package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// who prints the holder and the waiters. With --watch, it prints each change.
func TestWhoShowsHolderAndWaiters(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	call(t, exitDone, `"a": no client holds it, according to 3 of 3 masters`, "who", "a", "--config", f.config)
	watch := f.start("who", "--watch", "--every", "100ms", "a")
	watch.hear("no client holds it")
	first := f.start("run", "--label", "the first", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	first.hear("have it")
	watch.hear(`held by "the first"`)
	second := f.start("run", "--label", "the second", "a", "--", "sh", "-c", "read x; exit 0")
	watch.hear(`1. "the second" waits for`)

	one := f.start("who", "a", "b")
	one.ends(0, `"b": no client holds it`)
	want := regexp.MustCompile(`"a": held by "the first" since .*s left, token \d{16}, on 3 of 3 masters
   1\. "the second" waits for \d+s
`)
	if !want.MatchString(one.said()) {
		t.Errorf("the output does not match the expected text:\n%s", one.said())
	}
	j := f.start("who", "--json", "a")
	j.ends(0, `"label":"the first","since":"`)
	if !strings.Contains(j.said(), `"on":3,"masters":3,"waiters":1,"queue":[{"place":1,"label":"the second","for_ms":`) {
		t.Errorf("the output does not contain the holder and the waiter:\n%s", j.said())
	}
	first.stdin.Close()
	first.ends(0, "")
	watch.hear(`held by "the second"`)
	second.stdin.Close()
	second.ends(0, "")
	watch.signal(syscall.SIGINT)
	watch.ends(0, "")
	f.start("who").ends(exitUsage, "give the name of a lock")
}

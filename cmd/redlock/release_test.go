//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// Without a terminal, release needs --yes. With --lease, it releases only the lease with this ID.
func TestReleaseInScripts(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.start("release", "a").ends(exitUsage, "give either --ask")
	f.start("release", "--ask", "--force", "a").ends(exitUsage, "give either --ask")
	f.start("release", "--force", "a").ends(exitUsage, "no terminal to ask for confirmation")
	f.start("release", "--force").ends(exitUsage, "give the name of one lock")
	f.start("release", "--force", "--yes", "a").ends(exitDanger, `no client holds "a"`)
	f.hold("a", "b")
	f.start("release", "--force", "--yes", "--lease", "x:1:y", "a").ends(exitDanger, "but --lease is")
	who := f.start("who", "--json", "a")
	who.ends(0, "")
	var seen struct{ Lease string }
	if err := json.Unmarshal([]byte(who.said()), &seen); err != nil || seen.Lease == "" {
		t.Fatalf("the output of who contains no lease: %v: %s", err, who.said())
	}
	p := f.start("release", "--force", "--yes", "--json", "--lease", seen.Lease, "a")
	p.ends(exitDone, `"released":3`)
	if !strings.HasPrefix(p.said(), "{") || strings.Count(p.said(), "\n") != 1 {
		t.Errorf("the output is not one line of JSON:\n%s", p.said())
	}
	f.start("ls").ends(0, "b\n")
}

// release --ask sends a request to a holder that is subscribed, and does not end the lock.
func TestReleaseAsks(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.start("release", "--ask", "a").ends(exitDanger, `no client holds "a"`)
	locker := f.locker()
	lock, err := locker.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	request := lock.ReleaseRequested()
	for end := time.Now().Add(hang); ; { // until the holder is subscribed
		p := f.start("release", "--ask", "a")
		_ = p.cmd.Wait()
		if p.cmd.ProcessState.ExitCode() == exitDone {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the holder has not received the request: %s", p.said())
		}
	}
	<-request
	if err := lock.Err(); err != nil {
		t.Errorf("a request has ended the lock: %v", err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}

	// A stopped process is still connected: the command does not claim that it has received the request.
	holder := f.start("run", "b", "--", "sh", "-c", "echo have it; exec sleep 600")
	holder.hear("have it")
	subscribed := func() bool {
		code, _ := command("release", "--ask", "--config", f.config, "b")
		return code == exitDone
	}
	if !redistest.Until(subscribed) {
		t.Fatal("the holder is not subscribed")
	}
	holder.signal(syscall.SIGSTOP)
	f.start("release", "--ask", "b").ends(exitDone, `the request was sent to 1 holder of "b", and is not confirmed`)
}

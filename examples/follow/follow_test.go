package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockfile"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A client uses three masters, then a joint configuration of these and three others. Invalid files in between change
// nothing, and a lock stays held throughout.
func TestAProgramFollowsItsFile(t *testing.T) {
	old, next := testmasters.Listen(t, 3), testmasters.Listen(t, 3)
	path := filepath.Join(t.TempDir(), "locks.json")
	write(t, path, redlock.Configuration{Masters: old})
	changed := make(chan redlockinfo.Event, 10)
	locker, shut, err := redlockfile.Open(path, redlock.WithTrace(&redlockinfo.Trace{Event: func(e redlockinfo.Event) {
		if e.Kind == "reconfigured" {
			changed <- e
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- Follow(ctx, locker, path) }()
	if c := <-changed; c.Err != nil || c.Token != 0 {
		t.Errorf("at first: %+v", c)
	}
	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, path, redlock.Configuration{Epoch: 1, Masters: old, Next: next})
	if c := <-changed; c.Err != nil || c.Token != 1 {
		t.Errorf("after the change: %+v", c)
	}
	if got := locker.Admin().Configuration()[0]; got.Epoch != 1 || len(got.Next) != 3 || lock.Err() != nil {
		t.Errorf("it uses %+v, and the lock by %v", got, lock.Err())
	}
	cancel()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(lock.Unlock(t.Context()), shut(context.Background())); err != nil {
		t.Error(err)
	}
}

// The client leads until it is interrupted.
func TestTheProgramLeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.json")
	if err := run(t.Context(), path, io.Discard); err == nil {
		t.Error("the program starts without its file")
	}
	write(t, path, redlock.Configuration{Masters: testmasters.Listen(t, 3)})
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(run(ctx, path, out), out.Close()) }()
	var token int64
	if _, err := fmt.Fscanf(in, "leading, token %d\n", &token); err != nil || token == 0 {
		t.Errorf("token %d, %v", token, err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func write(t *testing.T, path string, set redlock.Configuration) {
	t.Helper()
	text, err := json.Marshal(set)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replace replaces the file at path by another one, as editors and config maps do.
func replace(t *testing.T, path string, set redlock.Configuration) {
	t.Helper()
	write(t, path+".new", set)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

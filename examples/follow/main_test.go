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
)

// The client leads until it is interrupted.
func TestProgramLeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.json")
	if err := run(t.Context(), path, io.Discard); err == nil {
		t.Error("the program started without a file")
	}
	write(t, path, redlock.Configuration{Masters: testmasters.Listen(t, 3)})
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(run(ctx, path, out), out.Close()) }()
	var token int64
	if _, err := fmt.Fscanf(in, "leading, token %d\n", &token); err != nil || token == 0 {
		t.Errorf("the program printed the token %d, %v; want a token", token, err)
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

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

// Two programs print the same value, which one of them has built.
func TestProgramsPrintOneValue(t *testing.T) {
	urls, dir := testmasters.Listen(t, 3), filepath.Join(t.TempDir(), "cache")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, stop := context.WithCancel(ctx)
	ended, lines := make(chan error, 2), make(chan string, 2)
	for range 2 {
		in, out := io.Pipe()
		go func() { ended <- errors.Join(run(ctx, urls, dir, time.Hour, out), out.Close()) }()
		go func() {
			line, err := bufio.NewReader(in).ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			lines <- line
			_, _ = io.Copy(io.Discard, in)
		}()
	}
	if a, b := <-lines, <-lines; a != b {
		t.Errorf("the programs printed %q and %q, want the same value", a, b)
	}
	stop()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

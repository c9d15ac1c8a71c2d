package redlock

import (
	"context"
	"errors"
	"testing"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
)

func TestImportWithDeadContextSendsNothing(t *testing.T) {
	l, attempts := tracedLocker(t)
	text := client.HandleOf(DefaultPrefix, "n", "i", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if k, err := l.Import(ctx, text); k != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Import with a cancelled context returned %v, %v", k, err)
	}
	must.Do(t, l.Close())
	if k, err := l.Import(t.Context(), text); k != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("Import after Close returned %v, %v", k, err)
	}
	if n := attempts(); n != 0 {
		t.Errorf("%d attempts were made", n)
	}
}

// A limit of tries ends an import as it ends a Lock, and the error contains the failures of the masters.
func TestImportGivesUpAfterItsTries(t *testing.T) {
	l := farLocker(t)
	text := client.HandleOf(DefaultPrefix, "n", "i", 1)
	_, err := l.Import(t.Context(), text, WithTries(3))
	if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, errNoRoute) {
		t.Errorf("Import returned %v", err)
	}
}

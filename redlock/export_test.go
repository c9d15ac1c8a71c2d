package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestExportGivesWhatImportNeedsAndEndsTheLock(t *testing.T) {
	l := loneLocker()
	l.cfg.prefix = "p"
	k := loneHold(l, "orders:42")
	k.h.token, k.h.ballot = 7, 9
	ctx := k.Context(t.Context())
	text, err := k.Export()
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrExported) || !errors.Is(k.Err(), ErrExported) {
		t.Errorf("the context ended with %v, the lock with %v", context.Cause(ctx), k.Err())
	}
	// The token of the next hold must be above every ballot that this one has sent, not its own token alone.
	want := handle{prefix: "p", name: "orders:42", id: k.h.id().ID, token: 9}
	if got, err := parseHandle(text); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if again, err := k.Export(); again != "" || !errors.Is(err, ErrExported) {
		t.Errorf("a second export: %q, %v", again, err)
	}
}

func TestExportOfANestedLockIsRefusedAndLeavesIt(t *testing.T) {
	k := loneHold(loneLocker(), strings.Repeat("n", 1000))
	k.h.depth = 3
	text, err := k.Export()
	if text != "" {
		t.Errorf("a handle: %q", text)
	}
	isInvalid(t, err, "3 deep")
	if k.Err() != nil || len(err.Error()) > 300 {
		t.Errorf("the lock is %v, the error has %d bytes", k.Err(), len(err.Error()))
	}
}

func TestExportAfterTheEndSaysWhy(t *testing.T) {
	for name, cause := range sentinels {
		k := loneHold(loneLocker(), "a")
		k.h.end(cause)
		if text, err := k.Export(); text != "" || !errors.Is(err, cause) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestImportWithADeadContextOrAClosedLockerSendsNothing(t *testing.T) {
	l := farLocker(t)
	text := handle{prefix: DefaultPrefix, name: "n", id: "i", token: 1}.String()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if k, err := l.Import(ctx, text); k != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", k, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k, err := l.Import(t.Context(), text); k != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, %v", k, err)
	}
	if n := l.sequence.Load(); n != 0 {
		t.Errorf("%d holds were made", n)
	}
}

// The tries bound an import as they do a lock, and each failed one is told with what the masters said.
func TestImportGivesUpAfterItsTries(t *testing.T) {
	l := farLocker(t)
	text := handle{prefix: DefaultPrefix, name: "n", id: "i", token: 1}.String()
	made := 0
	_, err := l.Import(t.Context(), text, WithBackoff(func() Backoff { made++; return Delays{Fixed: 1, Tries: 3}.Start() }))
	if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, errNoRoute) || made != 1 {
		t.Errorf("%v, %d policies were made", err, made)
	}
}

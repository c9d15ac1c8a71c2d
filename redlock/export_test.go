package redlock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestExportAfterTheEndSaysWhy(t *testing.T) {
	l := nearLocker(t)
	k := mustLock(t, l, "a")
	mustUnlock(t, k)
	if text, err := k.Export(); text != "" || !errors.Is(err, ErrReleased) {
		t.Errorf("after an Unlock: %q, %v", text, err)
	}
	k = mustLock(t, l, "a")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := k.Export(); text != "" || !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %q, %v", text, err)
	}
}

func TestImportWithADeadContextOrAClosedLockerSendsNothing(t *testing.T) {
	l, attempts := tracedLocker(t)
	text := exportedLock{prefix: DefaultPrefix, name: "n", id: "i", token: 1}.String()
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
	if n := attempts(); n != 0 {
		t.Errorf("%d attempts were made", n)
	}
}

// The tries bound an import like a Lock, and each failed try is reported with the refusals of the masters.
func TestImportGivesUpAfterItsTries(t *testing.T) {
	l := farLocker(t)
	text := exportedLock{prefix: DefaultPrefix, name: "n", id: "i", token: 1}.String()
	made := 0
	_, err := l.Import(t.Context(), text, WithRetry(Retry{Pause: func(n int) time.Duration {
		if made++; n == 3 {
			return -1
		}
		return 1
	}}))
	if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, errNoRoute) || made != 3 {
		t.Errorf("%v, %d pauses", err, made)
	}
}

// H79: an Unlock, an Extend and an Export of the nil lock of a failed call are errors.
func TestTheNilLockOfAFailedCallIsAnError(t *testing.T) {
	var k *Lock
	isInvalid(t, k.Unlock(t.Context()), "the lock is nil")
	isInvalid(t, k.Extend(t.Context()), "the lock is nil")
	_, err := k.Export()
	isInvalid(t, err, "the lock is nil")
}

// Of returns the lock of name, or nil if s has no such name.
func (s *Locks) Of(name string) *Lock {
	k, _ := tools{}.Member(s, name).(*Lock)
	return k
}

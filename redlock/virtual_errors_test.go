package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// H38: which error each end of a lock gives.
func TestVirtualErrorIdentities(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "released")
		ctx := k.Context(w.Context())
		if err := k.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
		w.isError(k.Unlock(w.Context()), redlock.ErrReleased)
		w.isError(k.Extend(w.Context()), redlock.ErrReleased)
		_, err := k.Export()
		w.isError(err, redlock.ErrReleased)
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		w.isError(k.Err(), redlock.ErrReleased)
		_, err = l.Lock(ctx, "released")
		if err == nil {
			w.Error("locked with the context of a lock that has ended")
		}

		k = w.take(l, "lost")
		ctx = k.Context(w.Context())
		w.masters.Lose("lost")
		w.isError(k.Extend(w.Context()), redlock.ErrLost)
		w.isError(context.Cause(ctx), redlock.ErrLost)
		w.notError(context.Cause(ctx), redlock.ErrMaxHold)
		w.isError(k.Unlock(w.Context()), redlock.ErrLost)
		w.isError(k.Unlock(w.Context()), redlock.ErrReleased)

		k = w.take(l, "lost unseen")
		w.masters.Lose("lost unseen")
		w.isError(k.Unlock(w.Context()), redlock.ErrLost)

		k = w.take(l, "exported")
		if _, err := k.Export(); err != nil {
			w.Error(err)
		}
		w.isError(k.Unlock(w.Context()), redlock.ErrExported)

		_, err = l.Lock(w.Context(), "", redlock.WithTTL(time.Second))
		w.isError(err, redlock.ErrInvalid)
		_, err = l.Lock(w.Context(), "a", redlock.WithTTL(time.Hour))
		w.isError(err, redlock.ErrInvalid)
		_, err = redlock.New(nil)
		w.isError(err, redlock.ErrInvalid)
	})
}

// H32: cancelled, timed out and used up are distinguished, and what the masters said last is in each.
func TestVirtualCancelledAndExhaustedAreToldApart(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		w.each(func(_ int, m *memory.Master) { m.Refuse("OOM command not allowed") })
		errWhy := errors.New("the user went home")
		cancelled, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(errWhy) })
		_, err := l.Lock(cancelled, "a")
		w.isError(err, context.Canceled, errWhy, redlock.ErrNoQuorum)
		w.notError(err, context.DeadlineExceeded, redlock.ErrHeld)

		timed, stop := context.WithTimeout(w.Context(), time.Second)
		defer stop()
		_, err = l.Lock(timed, "a")
		w.isError(err, context.DeadlineExceeded, redlock.ErrNoQuorum)
		w.notError(err, context.Canceled)
		var m *transport.Error
		if !errors.As(err, &m) || m.Unknown {
			w.Errorf("no master is named in %v", err)
		}

		_, err = l.Lock(w.Context(), "a", redlock.WithTries(3))
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, context.DeadlineExceeded, context.Canceled)
		w.each(func(_ int, m *memory.Master) { m.Refuse("") })

		w.masters.Take("a", 20*time.Second)
		timed, stop = context.WithTimeout(w.Context(), time.Second)
		defer stop()
		_, err = l.Lock(timed, "a")
		w.isError(err, context.DeadlineExceeded, redlock.ErrHeld)
		w.notError(err, redlock.ErrNoQuorum)

		dead, cancel2 := context.WithCancel(w.Context())
		cancel2()
		w.wire.clear()
		_, err = l.Lock(dead, "b")
		w.isError(err, context.Canceled)
		if n := len(w.wire.sent("acquire")); n != 0 {
			w.Errorf("%d acquires were sent on a dead context", n)
		}
	})
}

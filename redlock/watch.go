package redlock

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// watchPause is the interval between two inspections of a Watch.
const watchPause = time.Second

// Watch reports the holder or leader of name: immediately, and then whenever the holder or its value ([Lock.SetValue])
// changes. Without a holder, the ID is "", and Free shows whether that is certain. Watch inspects the name once a
// second and does not compete for the lock. If inspections fail, Watch reports the first error, and nothing more until
// an inspection succeeds. Watch ends when ctx ends, when the Locker is closed, when the loop ends, or after ErrInvalid:
//
//	for h, err := range locker.Watch(ctx, "orders/leader") { ... }
//
// Reports are at least a round trip old: they are for people and monitoring, and must not be used to decide whether
// something is safe to do.
func (l *Locker) Watch(ctx context.Context, name string) iter.Seq2[redlockinfo.Inspection, error] {
	return func(yield func(redlockinfo.Inspection, error) bool) {
		reported, failing := false, false
		type report struct {
			id, value string
			free      bool
		}
		for last := (report{}); ; {
			h, err := l.Inspect(ctx, name)
			switch {
			case errors.Is(err, ErrInvalid): // another inspection would fail, too
				yield(h, err)
				return
			case ctx.Err() != nil || errors.Is(err, ErrClosed):
				return
			case err != nil && !failing, err == nil && (!reported || failing || last != report{h.ID, h.Value, h.Free}):
				if !yield(h, err) {
					return
				}
				last, reported, failing = report{h.ID, h.Value, h.Free}, true, err != nil
			}
			if client.SetOf(l).Of(name).Rest(ctx, watchPause) != nil {
				return
			}
		}
	}
}

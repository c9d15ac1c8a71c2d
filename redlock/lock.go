package redlock

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A Lock is one acquisition of a name. It is released once and never locked again. A held lock is extended in the
// background. When the lock ends, by Unlock or otherwise, its Done channel is closed and its contexts end. All methods
// are safe for concurrent use.
type Lock struct {
	l    *shard
	hold lease.Hold
	keys scripts.Keys
}

// init prepares k for its hold: the lock of name on the masters of l.
func (k *Lock) init(l *shard, name string, role scripts.Role) {
	k.l, k.keys, k.hold.Lock = l, scripts.Prefix(l.cfg.prefix).KeysOf(name, role), k
}

// Name returns the name of the lock. For a slot of a [Semaphore], it is the name of the semaphore.
func (k *Lock) Name() string {
	name, _ := scripts.CutSlot(k.hold.Lease().Name)
	return name
}

// Slot returns the number of the slot, from 1, if k is a lock of a [Semaphore]. For other locks it returns 0.
func (k *Lock) Slot() int {
	_, slot := scripts.CutSlot(k.hold.Lease().Name)
	return slot.Number
}

// Token returns the fencing token. It is larger than that of every earlier holder of the name, and re-entries have the
// same token. Send it with each write to the resource that the lock protects, and let the resource refuse a token that
// is smaller than the largest it has seen. Tokens are positive, below 2^53, and roughly the masters' time in
// microseconds.
func (k *Lock) Token() int64 { return k.hold.Token() }

// Remaining returns the remaining validity. It is zero or negative if the lock has ended.
func (k *Lock) Remaining() time.Duration { return k.hold.Remaining() }

// Done returns a channel that is closed when the lock ends: because it was released, lost or exported, or because its
// Locker was closed. [Lock.Err] returns the reason. After the machine was suspended, the channel may close a tenth of a
// second late; Err is never late.
func (k *Lock) Done() <-chan struct{} { return k.hold.Done() }

// Err returns nil while the lock is held, and afterwards the reason why it ended: ErrReleased, ErrLost, ErrMaxHold,
// ErrExported or ErrClosed. Each call compares the validity with the clocks.
func (k *Lock) Err() error { return k.hold.Err() }

// Extend extends the lock by its TTL from now, without waiting for the next background extension. If Extend returns
// nil, the lock has validity left. If it returns ErrNoQuorum or the error of ctx, nothing has changed: the validity
// ends at the same time as before, and the background extension continues. If the lock has ended, Extend returns the
// reason.
func (k *Lock) Extend(ctx context.Context) error {
	if k == nil {
		return errNoLock
	}
	return k.l.events.call(ctx, "extend", k.Name(), func(c *tracedCall) error {
		c.Token = k.Token()
		return k.extend(ctx)
	})
}

// extend implements Extend without its trace.
func (k *Lock) extend(ctx context.Context) error {
	if !k.l.enter() {
		return errClosed
	}
	defer k.l.leave()
	return failed("extend", k.Name(), k.hold.Extend(ctx))
}

// Unlock releases the lock. The contexts of the lock end before anything is sent. Unlock sends the release to all
// masters regardless of the state of ctx, and waits until a quorum confirms it, ctx ends, or the remaining validity has
// expired. With [WithAsyncUnlock] it does not wait. A lock that was re-entered must be unlocked once for each Lock; the
// last Unlock releases it. If other goroutines of this Locker wait for the name, Unlock may hand the lock to the first
// of them instead, without sending anything or waiting.
//
// The second Unlock of a lock returns ErrReleased. If the lock was lost earlier, the first Unlock returns ErrLost, and
// still releases the keys that are left on the masters; if it has reached its [WithMaxHold], ErrMaxHold. Unlock returns
// ErrNoQuorum or the error of ctx if no quorum confirmed the release: unreachable masters get the release later, and
// their keys expire with the TTL at the latest. In each case the lock is no longer held. Unlock of a nil Lock, which a
// failed call returns, is an error, as are Extend, SetValue, Export and Downgrade; the other methods panic.
func (k *Lock) Unlock(ctx context.Context) error {
	if k == nil {
		return errNoLock
	}
	if k.l.cfg.trace.Event == nil {
		return k.unlock(ctx)
	}
	return k.l.events.call(ctx, "unlock", k.Name(), func(c *tracedCall) error {
		err := k.unlock(ctx)
		if c.Token = k.Token(); !errors.Is(err, ErrReleased) {
			c.Held = k.hold.Lasted()
		}
		return err
	})
}

// unlock implements Unlock without its trace.
func (k *Lock) unlock(ctx context.Context) error {
	k.l.calls.Add(1) // unlike enter, also after Close has begun; Close waits for this call
	defer k.l.leave()
	return failed("unlock", k.Name(), k.hold.Unlock(ctx))
}

// drop unlocks a lock that is not returned to the caller. It ignores the minimum hold and does not wait for the
// masters.
func (k *Lock) drop() {
	k.hold.Forgo()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = k.hold.Unlock(ended)
}

var errNoLock = invalid("the lock is nil: the call that should have returned it has failed; see its error")

// Context returns a copy of parent that ends when the lock ends; if the lock was lost, the cause is [ErrLost] (see
// [context.Cause]). The returned context owns the name, as do contexts derived from it: with such a context, calls that
// lock the name re-enter the lock if they have [WithReentry], and otherwise fail with [ErrReentry]. Code that gets this
// context may act as the holder; no other code can.
//
// Each call of the context's Err compares the validity with the clocks, so Err is exact even after the machine was
// suspended. After a suspension, the Done channel, and contexts derived from this one, may be up to a tenth of a second
// late.
func (k *Lock) Context(parent context.Context) context.Context {
	return k.hold.Context(parent)
}

// FromContext returns the lock that owns ctx: the innermost one or, if a name is given, the innermost one of that name.
// It is the Lock that the acquiring call returned, or passed to the function of a Do or Lead, and may have ended. It is
// for code that gets only a context; code that gets the lock needs no FromContext.
//
// FromContext returns nil and false if no such lock owns ctx, or if no name is given and the innermost context is that
// of a [Locks] of several names. It does not block.
func FromContext(ctx context.Context, name ...string) (*Lock, bool) {
	h := lease.Innermost(ctx)
	if len(name) > 0 {
		h = lease.InnermostOf(ctx, nil, name[0])
	}
	if h == nil {
		return nil, false
	}
	return h.Lock.(*Lock), true
}

// ReleaseRequested returns a channel that is closed when another client requests the release of the lock, by
// [Admin.RequestRelease] or `redlock release --ask`. Long work that another client can continue should stop at a good
// point, and return or unlock. The request itself does not end the lock.
//
// For a lock that has ended, ReleaseRequested returns nil, a channel that blocks forever. It does not block. The
// message of the request may be lost, so work must not depend on it.
func (k *Lock) ReleaseRequested() <-chan struct{} { return k.hold.Requested() }

// SetValue sets the value of the lock. [Locker.Inspect], [Locker.Watch] and `redlock who` show the value, for example
// the address and the version of a leader. A value is UTF-8 of at most 1 KiB, and empty until it is set.
//
// SetValue writes the value immediately, and returns nil once a quorum of masters has it. From then on no inspection
// shows an earlier value, unless masters are restarted with older data, or the inspecting client still uses former
// masters. SetValue does not extend the lock. If it returns [ErrNoQuorum] or the error of ctx, some masters may have
// the value; the next extensions write it to the others. If the lock has ended, SetValue returns the reason. The value
// ends with the lock, or when another process imports the lock. A lock whose value was set is released at its last
// Unlock: it is neither handed off nor kept by [WithLinger].
//
// SetValue returns [ErrInvalid] and sends nothing if the value is invalid, or if the lock is one of an [RWLock], which
// has no value.
func (k *Lock) SetValue(ctx context.Context, value string) error {
	if k == nil {
		return errNoLock
	}
	return k.l.events.call(ctx, opSetValue, k.Name(), func(c *tracedCall) error {
		c.Token = k.Token()
		return k.setValue(ctx, value)
	})
}

// setValue implements SetValue without its trace.
func (k *Lock) setValue(ctx context.Context, value string) error {
	if k.keys.Role() != scripts.Plain {
		return invalid("%s of %.80q: locks of an RWLock have no value", opSetValue, k.Name())
	}
	if _, err := scripts.NewValue(0, value); err != nil {
		return invalid("%s of %.80q: %w", opSetValue, k.Name(), err)
	}
	return failed(opSetValue, k.Name(), k.hold.SetValue(ctx, value))
}

// opSetValue is the operation of SetValue in errors and events.
const opSetValue = "set value"

// handlePrefix begins every handle; its digit is the version of the format.
const handlePrefix = "redlock1."

// Export ends this lock locally and returns a handle, with which another process, or this one, can take the lock over
// by [Locker.Import]. All contexts of the lock end first, with the cause [ErrExported]. The lock is no longer extended
// or released by Close, and Unlock returns ErrExported. Export sends nothing: the masters keep the lock until the
// remaining validity has expired; later imports of the handle fail. Export of a lock that was re-entered returns an
// error, and the lock stays held.
//
// Any client with the handle can take over the lock. The handle contains no credentials.
func (k *Lock) Export() (string, error) {
	if k == nil {
		return "", errNoLock
	}
	if k.keys.Role() != scripts.Plain {
		return "", invalid("export %.80q: only plain locks can be exported, not those of an RWLock", k.Name())
	}
	id, ballot, err := k.hold.Export()
	switch {
	case errors.Is(err, lease.ErrNested):
		return "", invalid("export %.80q: %s", k.Name(), plain(err))
	case err != nil:
		return "", lockError("export", k.Name(), err)
	}
	return exportedLock{prefix: k.l.cfg.prefix, name: k.hold.Lease().Name, id: id, token: ballot}.String(), nil
}

// importLock implements [Locker.Import].
func (l *shard) importLock(ctx context.Context, text string, opts []LockOption) (*Lock, error) {
	from, err := parseHandle(text)
	return l.events.acquiring(ctx, "import", from.name, func(stats *lease.AcquireStats) (*Lock, error) {
		if err != nil {
			return nil, err
		}
		if from.prefix != l.cfg.prefix {
			return nil, invalid("the handle was exported with the key prefix %q, but this Locker uses %q",
				from.prefix, l.cfg.prefix)
		}
		name, slot := scripts.CutSlot(from.name)
		if slot.Of > 0 {
			if err := l.checkName(name); err != nil {
				return nil, err
			}
			opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) { c.slot = true }))
		}
		cfg, err := l.configOf(from.name, scripts.Plain, opts)
		if err != nil {
			return nil, err
		}
		if !l.enter() {
			return nil, errClosed
		}
		defer l.leave()
		if ctx.Err() != nil {
			return nil, &LockError{Op: "import", Name: name, failure: round.Failure{Cause: contextError(ctx)}}
		}
		k := &Lock{}
		k.init(l, from.name, scripts.Plain)
		g := l.leases.NewImport(from.name, &k.keys, from.id)
		return l.importAs(ctx, "import", from, g, k, cfg, stats)
	})
}

// importAs takes over an exported lock with the lease g, and makes k its first hold.
func (l *shard) importAs(
	ctx context.Context, op string, from exportedLock, g *lease.Lease, k *Lock, cfg *lockConfig,
	stats *lease.AcquireStats,
) (*Lock, error) {
	caller := ctx
	ctx, cancel := l.limited(caller, cfg)
	defer cancel()
	won, began := false, l.cfg.clock.Now()
	defer func() {
		if !won {
			g.Abandon()
		}
	}()
	err := l.repeat(ctx, op, from.name, cfg, false, func() error {
		if view, err := l.voters.Ready(ctx); err != nil {
			return l.sender.NoQuorum(view, op, err)
		}
		if l.cfg.guard > 0 && l.cfg.clock.Now().Sub(began) > l.cfg.guard {
			return &round.Failure{Decision: ErrLost} // the lock has expired; another try would only block other clients
		}
		return g.Import(ctx, op, &cfg.Terms, from.token, stats)
	})
	if err != nil {
		return nil, l.waited(caller, ctx, err)
	}
	won = true
	if err := l.begin(g, k, cfg); err != nil {
		return nil, failed(op, from.name, err)
	}
	return l.stillGood(k, cfg)
}

// An exportedLock is the content of a handle.
type exportedLock struct {
	prefix, name, id string
	token            int64
}

// String returns the handle: its quoted fields and a checksum against corruption, in URL-safe base64.
func (h exportedLock) String() string {
	b := fmt.Appendf(nil, "%q %q %q %d", h.prefix, h.name, h.id, h.token)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return handlePrefix + base64.RawURLEncoding.EncodeToString(b)
}

// named reports whether the handle has a valid name.
func (h exportedLock) named() bool {
	name, slot := scripts.CutSlot(h.name)
	return scripts.CheckName(name) == nil && (name == h.name || slot.Of > 0)
}

func parseHandle(text string) (exportedLock, error) {
	var h exportedLock
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, handlePrefix))
	if err == nil {
		body := string(b[:max(0, len(b)-crc32.Size)])
		_, err = fmt.Sscanf(body, "%q %q %q %d", &h.prefix, &h.name, &h.id, &h.token)
	}
	switch {
	case !strings.HasPrefix(text, handlePrefix):
		err = fmt.Errorf("missing prefix %q", handlePrefix)
	// Each handle has exactly one text: reject any text that String would not return.
	case err != nil, h.String() != text, scripts.CheckPrefix(h.prefix) != nil, !h.named(), h.id == "",
		len(h.id) > 512, h.token < 0, h.token > scripts.MaxBallot:
		err = errors.New("truncated or altered")
	}
	if err != nil {
		return exportedLock{}, invalid("invalid handle %.24q: %w", text, err)
	}
	return h, nil
}

package redlock

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// handlePrefix begins every handle; the number is the version of the format.
const handlePrefix = "redlock1."

// Export ends this lock locally and returns a handle with which another process, or this one, can take it over by
// [Locker.Import]. All contexts of the lock end first, with the cause [ErrExported]. The lock is no longer extended,
// nor released by Close, and Unlock returns ErrExported. Nothing is sent: the masters keep the lock until the remaining
// validity has expired, and after that the handle imports nothing. Export of a lock that was re-entered returns an
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
		return "", &LockError{Op: "export", Name: k.Name(), decided: err}
	}
	return exportedLock{prefix: k.l.cfg.prefix, name: k.Name(), id: id, token: ballot}.String(), nil
}

// importLock implements [Locker.Import].
func (l *shard) importLock(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	if l.cfg.trace.Event == nil {
		return l.takeOver(ctx, text, opts, nil)
	}
	from, _ := parseHandle(text) // takeOver reports the error
	return l.events.acquiring(ctx, "import", from.name, func(c *lease.AcquireStats) (*Lock, error) {
		return l.takeOver(ctx, text, opts, c)
	})
}

// takeOver implements Import without its trace.
func (l *shard) takeOver(
	ctx context.Context, text string, opts []LockOption, course *lease.AcquireStats,
) (*Lock, error) {
	from, err := parseHandle(text)
	if err != nil {
		return nil, err
	}
	if from.prefix != l.cfg.prefix {
		return nil, invalid("the handle is of the key prefix %q, this Locker's is %q", from.prefix, l.cfg.prefix)
	}
	if err := l.checkName(from.name); err != nil {
		return nil, err
	}
	cfg, err := l.cfg.lock.with(opts, &l.cfg)
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	if ctx.Err() != nil {
		return nil, &LockError{Op: "import", Name: from.name, cause: contextError(ctx)}
	}
	k := &Lock{l: l, keys: scripts.Prefix(l.cfg.prefix).Keys(from.name)}
	g := l.leases.NewImport(from.name, &k.keys, from.id)
	return l.importAs(ctx, "import", from, g, k, cfg, course)
}

// importAs makes k the lock of g, which takes over an exported lock.
func (l *shard) importAs(
	ctx context.Context, op string, from exportedLock, g *lease.Lease, k *Lock, cfg *lockConfig,
	course *lease.AcquireStats,
) (*Lock, error) {
	caller := ctx
	ctx, cancel := cfg.limited(caller)
	defer cancel()
	won, began := false, l.cfg.clock.Now()
	defer func() {
		if !won { // even if a backoff has panicked
			g.Abandon()
		}
	}()
	err := l.repeat(ctx, op, from.name, cfg, false, func() error {
		if view, err := l.voters.Ready(ctx); err != nil {
			return l.sender.NoQuorum(view, op, err)
		}
		if l.cfg.guard > 0 && l.cfg.clock.Now().Sub(began) > l.cfg.guard {
			return &round.Failure{Decision: ErrLost} // it has expired; shares already taken over block others
		}
		return g.Import(ctx, op, &cfg.Terms, from.token, course)
	})
	if err != nil {
		return nil, waited(caller, ctx, err)
	}
	won = true
	if err := l.begin(g, k, cfg); err != nil {
		return nil, failed(op, from.name, err)
	}
	return l.stillGood(k, cfg)
}

// An exportedLock is the content of a handle: everything that Import needs.
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

func parseHandle(text string) (exportedLock, error) {
	var h exportedLock
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, handlePrefix))
	if err == nil {
		body := string(b[:max(0, len(b)-crc32.Size)])
		_, err = fmt.Sscanf(body, "%q %q %q %d", &h.prefix, &h.name, &h.id, &h.token)
	}
	switch {
	case !strings.HasPrefix(text, handlePrefix):
		err = fmt.Errorf("it does not begin with %q", handlePrefix)
	// Reject texts that String would write differently, so that each handle has exactly one text.
	case err != nil, h.String() != text, scripts.CheckPrefix(h.prefix) != nil, scripts.CheckName(h.name) != nil,
		h.id == "", len(h.id) > 512, h.token < 0, h.token > scripts.MaxBallot:
		err = errors.New("it is truncated or altered")
	}
	if err != nil {
		return exportedLock{}, invalid("%.24q is not the handle of an exported lock: %v", text, err)
	}
	return h, nil
}

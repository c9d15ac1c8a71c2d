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
	"github.com/redlock-go/redlock/redlock/internal/grant"
)

// handlePrefix begins every handle; the number is the version of the form.
const handlePrefix = "redlock1."

// Export ends this lock here and returns a handle with which another process, or this one, takes it over by
// [Locker.Import]. All contexts of the lock end first, with the cause [ErrExported]; it is no longer extended, nor
// released by Close, and an Unlock returns ErrExported. Nothing is sent: the masters keep it until the validity that
// was left is over, and a handle that nobody imports by then imports nothing. It is an error to export a lock that
// was re-entered; it then goes on.
//
// Whoever has the handle can take the lock. It contains no credentials.
func (k *Lock) Export() (string, error) {
	if k == nil {
		return "", errNoLock
	}
	id, ballot, err := k.handle.Export()
	switch {
	case errors.Is(err, grant.ErrNested):
		return "", invalid("export %.80q: it is locked more than once; unlock the inner locks first", k.Name())
	case err != nil:
		return "", &LockError{Op: "export", Name: k.Name(), Decision: err}
	}
	return handle{prefix: k.l.cfg.prefix, name: k.Name(), id: id, token: ballot}.String(), nil
}

// Import takes over the lock of a handle that [Lock.Export] gave: under a new id and with a larger token, on the
// masters that still have it. It needs a majority, and gives the others their part back. Of several imports of one
// handle at most one succeeds.
//
// Like [Locker.Lock] it tries until ctx ends or the tries are used up. Errors: ErrInvalidOption for what is no handle
// or one of another prefix, before anything is sent; ErrLost where a majority no longer has the lock; those of Lock.
// On failure what was taken over is released.
func (l *Locker) Import(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	from, err := parseHandle(text)
	if err != nil {
		return nil, err
	}
	if from.prefix != l.cfg.prefix {
		return nil, invalid("the handle is of the key prefix %q, this Locker's is %q", from.prefix, l.cfg.prefix)
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
		return nil, &LockError{Op: "import", Name: from.name, Cause: contextError(ctx)}
	}
	k := &Lock{l: l, keys: scripts.Prefix(l.cfg.prefix).Keys(from.name)}
	g, terms := l.grants.NewImport(from.name, &k.keys, from.id), cfg.terms
	err = l.repeat(ctx, "import", from.name, cfg, false, func() error {
		if view, err := l.ready(ctx); err != nil {
			return l.sender.NoQuorum(view, "import", err)
		}
		return g.Import(ctx, "import", terms, from.token)
	})
	if err != nil {
		g.Abandon()
		return nil, err
	}
	l.queue.Held(g)
	if err := g.Begin(&k.handle, terms); err != nil {
		l.queue.Over(g)
		return nil, failed("import", from.name, err)
	}
	return l.handOut(k, cfg)
}

// A handle is what Import needs to know.
type handle struct {
	prefix, name, id string
	token            int64
}

// String writes the handle: the fields with their lengths, a checksum against mutilation, in base64 that survives URLs.
func (h handle) String() string {
	var b []byte
	for _, s := range []string{h.prefix, h.name, h.id} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(h.token))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return handlePrefix + base64.RawURLEncoding.EncodeToString(b)
}

var errHandle = errors.New("it is cut off or altered")

func parseHandle(text string) (handle, error) {
	bad := func(why error) (handle, error) {
		return handle{}, invalid("%.24q is not the handle of an exported lock: %v", text, why)
	}
	body, ok := strings.CutPrefix(text, handlePrefix)
	if !ok {
		return bad(fmt.Errorf("it does not begin with %q", handlePrefix))
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || len(b) < 4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return bad(errHandle)
	}
	b = b[:len(b)-4]
	var h handle
	for _, field := range []*string{&h.prefix, &h.name, &h.id} {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return bad(errHandle)
		}
		*field = string(b[used : used+int(n)])
		b = b[used+int(n):]
	}
	token, used := binary.Uvarint(b)
	if used != len(b) || used <= 0 || token > scripts.MaxBallot {
		return bad(errHandle)
	}
	h.token = int64(token)
	if scripts.CheckPrefix(h.prefix) != nil || scripts.CheckName(h.name) != nil || h.id == "" || len(h.id) > 512 {
		return bad(errHandle)
	}
	if h.String() != text { // base64 and varints have more than one form, and the decoder skips line ends
		return bad(errHandle)
	}
	return h, nil
}

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
)

// handlePrefix begins every handle; the number is the version of the form.
const handlePrefix = "redlock1."

// Export ends this lock here and returns a handle with which another process, or this one, takes the hold over by
// [Locker.Import]. All contexts of the hold end first, with the cause [ErrExported]; it is no longer extended, nor
// released by Close, and an Unlock returns ErrExported. Nothing is sent: the masters go on holding it until the validity
// that was left is over, and a handle that nobody imports by then imports nothing. It is an error to export a hold with
// more than one Lock; the hold then goes on.
//
// Whoever has the handle can take the lock. It contains no credentials.
func (k *Lock) Export() (string, error) {
	h := k.h
	h.mu.Lock()
	if k.ended != nil {
		defer h.mu.Unlock()
		return "", &LockError{Op: "export", Name: h.name, Decision: k.ended}
	}
	if deep := h.depth + h.coming; deep > 1 {
		defer h.mu.Unlock()
		return "", invalid("export %.80q: it is locked %d deep; unlock the inner locks first", h.name, deep)
	}
	text := handle{prefix: h.l.cfg.prefix, name: h.name, id: h.idText(), token: h.largestLocked()}.String()
	handles := h.endLocked(ErrExported)
	h.mu.Unlock()
	h.ended(handles, ErrExported)
	h.l.lines.ended(h)
	return text, nil
}

// largestLocked is the largest ballot that h has sent: the next owner's must be above it, so that whatever is still on its
// way is barred by what the next one does. A heal of a master whose bar somebody has set into the future is left out: one
// such bar must not become everybody's. h.mu is held.
func (h *hold) largestLocked() int64 {
	largest := max(h.token, h.ballot)
	if h.sentTo == nil {
		return largest
	}
	now, _ := h.l.ballots.time(h.l.now(), -1)
	for _, ballot := range h.sentTo {
		if ballot <= now {
			largest = max(largest, ballot)
		}
	}
	return largest
}

// Import takes over the hold of a handle that [Lock.Export] gave: under a new id and with a larger token, on the masters
// that still have it. It needs a majority, and gives the others their part back. Of several imports of one handle at
// most one succeeds.
//
// Like [Locker.Lock] it tries until ctx ends or the tries are used up. Errors: ErrInvalidOption for what is no handle or
// one of another prefix, before anything is sent; ErrLost where a majority no longer has the hold; those of Lock. On
// failure what was taken over is released.
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
	h := l.newHold(from.name, scripts.Prefix(l.cfg.prefix).Keys(from.name), cfg, from.id)
	// One hold for all attempts: what an earlier one has taken over is still ours in the next.
	a := attempt{l: l, name: from.name, op: "import", mode: scripts.ModeImport, cfg: cfg, h: h, keep: true, floor: from.token}
	backoff := cfg.start()
	if backoff == nil {
		return nil, invalid("the function given to WithBackoff returned nil")
	}
	for try := 1; ; try++ {
		sent, err := a.run(ctx)
		if err == nil {
			// A master that the import did not reach may still have what the exporter left; the release ends that too.
			h.sent |= a.last.asked
			l.lines.hold(h)
			return l.publish(h), nil
		}
		if worthAnother(err) && try != cfg.tries {
			if err = l.pause(ctx, backoff, err, sent); err == nil {
				continue
			}
		}
		a.rollBack()
		return nil, err
	}
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

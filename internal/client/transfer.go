package client

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// handlePrefix begins every handle; its digit is the version of the format.
const handlePrefix = "redlock1."

// Export implements Export of package redlock.
func (k *Lock) Export() (string, error) {
	if k.keys.Role() != scripts.Plain {
		return "", Invalid("export %.80q: only plain locks can be exported, not those of an RWLock", k.Name())
	}
	id, ballot, err := k.Hold.Export()
	switch {
	case errors.Is(err, lease.ErrNested):
		return "", Invalid("export %.80q: %s", k.Name(), Plain(err))
	case err != nil:
		return "", lockError(redlockinfo.OpExport, k.Name(), err)
	}
	return Exported{prefix: k.c.cfg.Prefix, name: k.Hold.Lease().Name, id: id, token: ballot}.String(), nil
}

// Name returns the name of the lock or, for a slot, of its semaphore.
func (h Exported) Name() string {
	name, _ := scripts.CutSlot(h.name)
	return name
}

// Import implements Import of package redlock, for a request with the name of the handle.
func (c *Client) Import(ctx context.Context, from Exported, r Request) (*Lock, error) {
	if from.prefix != c.cfg.Prefix {
		return nil, Invalid("the handle was exported with the key prefix %q, but this Locker uses %q",
			from.prefix, c.cfg.Prefix)
	}
	if !c.enter() {
		return nil, lease.ErrClosed
	}
	defer c.leave()
	if ctx.Err() != nil {
		return nil, failed(r.Op, r.Name, &round.Failure{Cause: fault.ContextError(ctx)})
	}
	k := &Lock{}
	k.init(c, from.name, scripts.Plain)
	l := c.leases.NewImport(from.name, &k.keys, from.id)
	r.Name = from.name
	return c.importLease(ctx, &r, from.token, l, k)
}

// Downgrade implements Downgrade of package redlock, for a request with the name of the lock.
func (k *Lock) Downgrade(ctx context.Context, r Request) (_ *Lock, err error) {
	c, name := k.c, r.Name
	if k.Hold.Lease().Role() != scripts.Writer {
		return nil, Invalid("downgrade %.80q: not a writer's lock (RWLock.Lock)", name)
	}
	if lease.InnermostOf(ctx, c.leases, name) == &k.Hold {
		return nil, Invalid("downgrade %.80q: the context is that of the writer's lock, which ends: pass a context that is "+
			"not derived from it", name)
	}
	if r.Settings, err = r.Settings.shared(); err != nil {
		return nil, err
	}
	if !c.enter() {
		return nil, lease.ErrClosed
	}
	defer c.leave()
	id, ballot, err := k.Hold.Downgrade()
	switch {
	case errors.Is(err, lease.ErrNested):
		return nil, Invalid("downgrade %.80q: %s", name, Plain(err))
	case err != nil:
		return nil, lockError(r.Op, name, err)
	}
	reader := &Lock{}
	reader.init(c, name, scripts.Reader)
	l := c.leases.NewImport(name, &reader.keys, id)
	l.Inherits(ballot)
	return c.importLease(ctx, &r, ballot, l, reader)
}

// importLease takes over an exported lock, whose largest ballot was token, with the lease l, of which k becomes the
// first hold.
func (c *Client) importLease(ctx context.Context, r *Request, token int64, l *lease.Lease, k *Lock) (*Lock, error) {
	began, s := c.cfg.Clock.Now(), r.Settings
	r.Wait = true
	err := c.limited(ctx, s.WaitLimit, s.QuorumWait, func(ctx context.Context) error {
		return c.repeat(ctx, r, func() error {
			if view, err := c.monitor.Ready(ctx); err != nil {
				return c.sender.NoQuorum(view, err)
			}
			if c.cfg.MaxTTL > 0 && c.cfg.Clock.Now().Sub(began) > c.cfg.MaxTTL {
				return &round.Failure{Decision: lease.ErrLost} // the lock has expired; another try would only block other clients
			}
			return l.Import(ctx, r.Op, &s.Terms, token, r.Stats)
		})
	})
	if err != nil {
		l.Abandon()
		return nil, err
	}
	if err := c.queueOf(l.Role()).Start(l, &k.Hold, &s.Terms); err != nil {
		return nil, failed(r.Op, r.Name, err)
	}
	return k, c.stillGood(r.Op, k, s)
}

// An Exported is what a handle says about a lock.
type Exported struct {
	prefix, name, id string
	token            int64
}

// String returns the handle: its quoted fields and a checksum against corruption, in URL-safe base64.
func (h Exported) String() string {
	b := fmt.Appendf(nil, "%q %q %q %d", h.prefix, h.name, h.id, h.token)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return handlePrefix + base64.RawURLEncoding.EncodeToString(b)
}

// named reports whether the handle has a valid name.
func (h Exported) named() bool {
	name, slot := scripts.CutSlot(h.name)
	return scripts.CheckName(name) == nil && (name == h.name || slot.Of > 0)
}

// ReadHandle reads a handle, which Export has returned as text.
func ReadHandle(text string) (Exported, error) {
	var h Exported
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
		return Exported{}, Invalid("invalid handle %.24q: %w", text, err)
	}
	return h, nil
}

package client

import (
	"context"

	"github.com/redlock-go/redlock/internal/scripts"
)

// AcquireReader acquires the lock of a reader: see RLock and TryRLock of package redlock.
func (c *Client) AcquireReader(ctx context.Context, r Request) (*Lock, error) {
	return c.acquireShare(ctx, scripts.Reader, r)
}

// AcquireWriter acquires the lock of the writer: see Lock and TryLock of an RWLock.
func (c *Client) AcquireWriter(ctx context.Context, r Request) (*Lock, error) {
	return c.acquireShare(ctx, scripts.Writer, r)
}

func (c *Client) acquireShare(ctx context.Context, role scripts.Role, r Request) (_ *Lock, err error) {
	if r.Settings, err = r.Settings.shared(); err != nil {
		return nil, err
	}
	r.role = role
	return c.Acquire(ctx, r)
}

// shared returns a copy of s with the settings for a lock of an RWLock.
func (s *Settings) shared() (*Settings, error) {
	if s.MinHold > 0 {
		return nil, Invalid("minimum hold %v: locks of an RWLock have no minimum hold", s.MinHold)
	}
	changed := *s
	changed.Handoffs, changed.Linger = 0, 0
	return &changed, nil
}

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/pool/internal/fault"
)

// A Target is a server and the way to reach it.
type Target struct {
	Network, Addr  string
	TLS            *tls.Config // nil: in the clear
	User, Password string
	Database       int
	Dialer         func(ctx context.Context, network, addr string) (net.Conn, error)
	Foreign        *redis.Pool   // where set, it makes the connections, and of the other fields Timeout alone counts
	Timeout        time.Duration // bounds Connect, and Within
}

// A Step does something with a connection. Where it fails it names what failed.
type Step func(*Conn) (op string, err error)

// Connect dials, logs in, and does one step more, all within the timeout. The error says that the master is down and
// why, without credentials.
func (t *Target) Connect(ctx context.Context, step Step) (c *Conn, op string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	if c, err = t.dial(ctx); err != nil {
		return nil, "connect", t.explain(ctx, "connect", err)
	}
	op, err = t.within(ctx, c, func(c *Conn) (string, error) {
		if op, err := t.login(c); err != nil {
			return op, err
		}
		return step(c)
	})
	if err != nil {
		c.Close()
		return nil, op, err
	}
	return c, "", nil
}

// Within does a step on a connection that is used by nobody else, within the timeout. Where it fails the connection may
// be closed.
func (t *Target) Within(ctx context.Context, c *Conn, step Step) (op string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	return t.within(ctx, c, step)
}

func (t *Target) within(ctx context.Context, c *Conn, step Step) (op string, err error) {
	// A connection that a *redis.Pool made knows no deadline of ours; closing ends any read or write.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.Close()
		close(closed)
	})
	op, err = step(c)
	if !stop() {
		<-closed
		if err == nil {
			err = net.ErrClosed
		}
	}
	if err != nil {
		err = t.explain(ctx, op, err)
	}
	return op, err
}

// explain gives what ended an attempt its one form.
func (t *Target) explain(ctx context.Context, op string, err error) error {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		return fault.ErrClosed
	case ended != nil && !fault.IsTimeout(err):
		// The connection was closed because time was up; what the read then said is not the reason.
		return fault.Down(fault.Timeout("timed out within %v (%s)", t.Timeout, op))
	}
	return fault.Down(fault.Normal(fault.Scrub(err, t.Password), t.Timeout))
}

func (t *Target) dial(ctx context.Context) (*Conn, error) {
	if t.Foreign != nil {
		dial := t.Foreign.DialContext
		if dial == nil {
			dial = func(context.Context) (redis.Conn, error) { return t.Foreign.Dial() }
		}
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
	dialer := t.Dialer
	if dialer == nil {
		dialer = (&net.Dialer{}).DialContext
	}
	raw, err := dialer(ctx, t.Network, t.Addr)
	if err != nil {
		return nil, err
	}
	if t.TLS == nil {
		return NewConn(raw, raw), nil
	}
	conf := t.TLS.Clone()
	if host, _, err := net.SplitHostPort(t.Addr); err == nil && conf.ServerName == "" {
		conf.ServerName = host
	}
	secure := tls.Client(raw, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the handshake's error is the one to tell
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return NewConn(secure, raw), nil
}

func (t *Target) login(c *Conn) (op string, err error) {
	if t.Password != "" {
		args := []any{t.Password}
		if t.User != "" {
			args = []any{t.User, t.Password}
		}
		if _, err := c.Do("AUTH", args...); err != nil {
			return "auth", err
		}
	}
	if t.Database != 0 {
		if _, err := c.Do("SELECT", t.Database); err != nil {
			return "select", err
		}
	}
	return "", nil
}

// Pauses are the waits between attempts to connect: they double from Min to Max, and each is shortened by a random
// share of up to a half. They are measured by a timer, so setting the wall clock does not change them.
type Pauses struct {
	Min, Max time.Duration
	next     time.Duration
}

// Served tells how long the last connection has served, and reports whether to redial at once.
func (p *Pauses) Served(d time.Duration) bool {
	if d < p.Max {
		return false
	}
	p.next = 0
	return true
}

// Rest waits for the next pause, or until ctx ends.
func (p *Pauses) Rest(ctx context.Context) {
	d := max(p.next, p.Min)
	p.next = min(2*d, p.Max)
	t := time.NewTimer(d - time.Duration(jitter.Int64N(int64(d)/2+1)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

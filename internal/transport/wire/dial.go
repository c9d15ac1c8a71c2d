package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A Target describes a server and how to connect to it.
type Target struct {
	Network, Addr string
	TLS           *tls.Config // nil for a connection without TLS
	// TLSFunc, if set, returns the configuration for each connection with TLS; TLS is then only not nil.
	TLSFunc        func() (*tls.Config, error)
	User, Password string
	Provider       *Provider // if not nil, returns the user and the password for each connection
	Database       int
	Dialer         func(ctx context.Context, network, addr string) (net.Conn, error)
	// FindFunc, if set, returns the address for each connection instead of Addr, which then only names the server.
	FindFunc func(ctx context.Context) (addr string, err error)
	// Foreign, if set, makes the connections. Of the other fields, only Addr, which then names the server, DialTimeout and
	// Slots are used.
	Foreign     *redis.Pool
	DialTimeout time.Duration // bounds Connect
	Slots       *Slots        // limits the attempts of Redial; nil means no limit
}

// Connect dials, logs in, and calls step with the connection, all within DialTimeout. If this fails, Connect returns
// the operation that failed, and an error that says why the master is down, without credentials.
func (t *Target) Connect(ctx context.Context, step func(*Conn) (op string, err error)) (c *Conn, op string, err error) {
	return t.connect(ctx, t.DialTimeout, step)
}

// connect implements Connect within the given time.
func (t *Target) connect(
	ctx context.Context, within time.Duration, step func(*Conn) (op string, err error),
) (c *Conn, op string, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	l := login{t.User, t.Password}
	if c, err = t.dial(ctx); err != nil {
		return nil, "connect", explain(ctx, within, "connect", l, err)
	}
	// A connection made by a *redis.Pool has no deadline of ours. Closing the connection ends any read or write.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.Close()
		close(closed)
	})
	if t.Provider != nil { // only now: if the server cannot be reached, no credentials are needed
		op = "credentials"
		l, err = t.Provider.obtain(ctx)
	}
	if err == nil {
		op, err = c.Ask(t.questions(l))
	}
	if err == nil {
		op, err = step(c)
	}
	if !stop() {
		<-closed
		err = cmp.Or(err, net.ErrClosed)
	}
	if err != nil {
		c.Close()
		return nil, op, explain(ctx, within, op, l, err)
	}
	return c, "", nil
}

// Query asks q on a new connection.
func (t *Target) Query(ctx context.Context, q Question) error {
	c, _, err := t.Connect(ctx, func(c *Conn) (string, error) { return c.Ask([]Question{q}) })
	if err == nil {
		c.Close()
	}
	return err
}

// An Answer is the answer of one server to a query.
type Answer[T any] struct {
	Addr  string
	Value T
	Err   error
}

// Poll calls ask for all servers concurrently, and returns the answers in the order in which they come. When the number
// of answers without an error has reached enough, Poll cancels the remaining calls and omits their answers.
func Poll[T any](
	ctx context.Context, targets []Target, enough int, ask func(context.Context, *Target) (T, error),
) (list []Answer[T]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan Answer[T], len(targets))
	for i := range targets {
		go func() {
			value, err := ask(ctx, &targets[i])
			answers <- Answer[T]{targets[i].Addr, value, err}
		}()
	}
	for range targets { // wait for all calls: cancel ends those that are not needed
		a := <-answers
		if enough == 0 {
			continue
		}
		if list = append(list, a); a.Err == nil {
			enough--
		}
		if enough == 0 {
			cancel()
		}
	}
	return list
}

// SharedCause returns the cause of all failed answers, or fault.Unknown if their causes differ.
func SharedCause[T any](answers []Answer[T]) fault.Cause {
	var causes []fault.Cause
	for _, a := range answers {
		if a.Err != nil {
			causes = append(causes, fault.CauseOf(a.Err))
		}
	}
	if causes = slices.Compact(causes); len(causes) == 1 {
		return causes[0]
	}
	return fault.Unknown
}

// explain converts the error of a failed Connect into an error that says why the master is down.
func explain(ctx context.Context, within time.Duration, op string, l login, err error) error {
	const because = "it does not answer, or this host is overloaded"
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, context.DeadlineExceeded):
		return cause
	case cause != nil && !fault.IsTimeout(err):
		// The timeout has closed the connection: err is the error of the read or write that this ended.
		return fault.Down(fault.Timeout("timed out within %v (%s): %s", within, op, because))
	case fault.IsTimeout(err) && !errors.Is(err, fault.ErrTimeout):
		text := fmt.Sprintf("timed out within %v (%v): %s", within, fault.Scrub(err, l.password), because)
		return fault.Down(fault.New(text, fault.ErrTimeout, fault.CauseOf(err)))
	}
	return fault.Explain(err, l.password, within)
}

// dialled returns the connection that dial, a function of the user, makes.
func dialled[C comparable](dial func() (C, error)) (c C, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the dialer failed: %w", panicked(v))
		}
	}()
	if c, err = dial(); err == nil && c == *new(C) {
		err = errors.New("the dialer returned no connection")
	}
	return c, err
}

func (t *Target) dial(ctx context.Context) (*Conn, error) {
	if t.Foreign != nil {
		dial := t.Foreign.DialContext
		if dial == nil {
			dial = func(context.Context) (redis.Conn, error) { return t.Foreign.Dial() }
		}
		conn, err := dialled(func() (redis.Conn, error) { return dial(ctx) })
		if err != nil {
			return nil, err
		}
		return &Conn{conn: conn}, nil
	}
	dialer := t.Dialer
	if dialer == nil {
		dialer = (&net.Dialer{}).DialContext
	}
	addr, err := t.Addr, error(nil)
	if t.FindFunc != nil {
		if addr, err = t.FindFunc(ctx); err != nil {
			return nil, err
		}
	}
	raw, err := dialled(func() (net.Conn, error) { return dialer(ctx, t.Network, addr) })
	if err != nil {
		return nil, err
	}
	conn := raw
	if t.TLS != nil {
		conf := t.TLS.Clone()
		if t.TLSFunc != nil {
			if conf, err = t.TLSFunc(); err != nil {
				_ = raw.Close()
				return nil, fault.New(err.Error(), fault.LocalFiles)
			}
		}
		if host, _, err := net.SplitHostPort(addr); err == nil && conf.ServerName == "" {
			conf.ServerName = host
		}
		secure := tls.Client(raw, conf)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close() // the handshake's error is the one to report
			return nil, t.ofHandshake(err)
		}
		conn = secure
	}
	c := NewConn(conn, raw)
	c.Addr = addr
	return c, nil
}

// ofHandshake returns the error of a TLS handshake. Its cause says whether the step that failed was ours to choose.
func (t *Target) ofHandshake(err error) error {
	switch cause := fault.CauseOf(err); {
	case cause == fault.Hangs:
		return fault.New("TLS: "+err.Error(), fault.HangsInTLS, err)
	case cause == fault.Closed:
		return fault.New("TLS: "+err.Error(), fault.ClosedInTLS, err)
	case cause == fault.OtherName && t.FindFunc != nil && t.TLS.ServerName == "":
		return fault.New("TLS: "+err.Error(), fault.AnnouncedName, err)
	}
	return fmt.Errorf("TLS: %w", err)
}

// Mismatched reports whether the server proves that it uses TLS although t does not, or the reverse. It makes one
// connection, and returns within DialTimeout.
func (t *Target) Mismatched(ctx context.Context) bool {
	if t.Foreign != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, t.DialTimeout)
	defer cancel()
	other := *t
	other.TLSFunc = nil
	if other.TLS = nil; t.TLS == nil {
		other.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nothing is sent on this connection
	}
	c, err := other.dial(ctx)
	if err != nil {
		var alert *net.OpError
		return other.TLS != nil && errors.As(err, &alert) && alert.Op == "remote error"
	}
	defer context.AfterFunc(ctx, c.Close)()
	defer c.Close()
	if other.TLS != nil {
		return true
	}
	_, err = c.Ask([]Question{{Op: "ping", Command: []string{"PING"}, TakeFunc: func(any) error { return nil }}})
	return err == nil
}

// questions returns the commands that log in and select the database.
func (t *Target) questions(l login) (list []Question) {
	add := func(op string, command ...string) {
		list = append(list, Question{op, command, func(reply any) error {
			_, err := redis.String(reply, nil)
			return err
		}})
	}
	switch {
	case l.user != "":
		add("auth", "AUTH", l.user, l.password)
	case l.password != "":
		add("auth", "AUTH", l.password)
	}
	if t.Database != 0 {
		add("select", "SELECT", strconv.Itoa(t.Database))
	}
	return list
}

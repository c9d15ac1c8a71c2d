package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// connect dials, and takes the connection through the handshake: log-in, database, INFO and its verdict, scripts. All
// of it ends within the dial timeout, or with ctx. The error is complete, for people.
func (m *master) connect(ctx context.Context) (*link, Info, *Error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.dialTimeout)
	defer cancel()
	l, err := m.dial(ctx)
	if err != nil {
		return nil, Info{}, m.connectError(ctx, "connect", err)
	}
	var info Info
	op, err := within(ctx, l, func() (op string, err error) {
		info, op, err = m.handshake(l)
		return op, err
	})
	if err != nil {
		l.close()
		return nil, Info{}, m.connectError(ctx, op, err)
	}
	return l, info, nil
}

// within runs step, the only user of l, and closes l when ctx ends before it.
func within(ctx context.Context, l *link, step func() (op string, err error)) (op string, err error) {
	// Deadlines of the connection are no use where a *redis.Pool made it; closing ends any read or write.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.close()
		close(closed)
	})
	op, err = step()
	if !stop() {
		<-closed
		if err == nil {
			err = net.ErrClosed
		}
	}
	return op, err
}

// connectError turns what ended an attempt into its one form.
func (m *master) connectError(ctx context.Context, op string, err error) *Error {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		err = ErrClosed
	case ended != nil && !isTimeout(err):
		// The connection was closed because of the time; what the read then said is not the reason.
		err = timeoutCause("timed out within %v (%s)", m.cfg.dialTimeout, op)
	default:
		err = normalise(scrub(err, m.cfg.password), m.cfg.dialTimeout)
	}
	return &Error{Addr: m.name, Op: op, Err: downCause(err)}
}

func (m *master) dial(ctx context.Context) (*link, error) {
	if m.foreign != nil {
		c, err := m.dialForeign(ctx)
		if err != nil {
			return nil, err
		}
		return wrapLink(c), nil
	}
	dialer := m.cfg.dialer
	if dialer == nil {
		dialer = (&net.Dialer{}).DialContext
	}
	raw, err := dialer(ctx, m.network, m.addr)
	if err != nil {
		return nil, err
	}
	if !m.useTLS {
		return newLink(raw, raw), nil
	}
	conf := &tls.Config{}
	if m.cfg.tls != nil {
		conf = m.cfg.tls.Clone()
	}
	if conf.ServerName == "" {
		if host, _, err := net.SplitHostPort(m.addr); err == nil {
			conf.ServerName = host
		}
	}
	secure := tls.Client(raw, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the handshake's error is the one to tell
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return newLink(secure, raw), nil
}

// handshake returns the step at which it failed together with the error.
//
// What INFO says counts from when it was asked: a reply that was held up on its way, or a process that slept in the middle,
// may know nothing of what the server has been since. Where it is older than a heartbeat may be, it is asked once more.
func (m *master) handshake(l *link) (info Info, op string, err error) {
	if op, err = m.login(l); err != nil {
		return info, op, err
	}
	if info, err = m.readFit(l); err != nil {
		return info, "info", err
	}
	if err = loadScripts(l); err != nil {
		return info, "script load", err
	}
	most := max(m.cfg.heartbeat, m.cfg.timeout)
	if m.cfg.clock.Since(info.asked) <= most {
		return info, "info", nil
	}
	if info, err = m.readFit(l); err != nil {
		return info, "info", err
	}
	if info.took > most {
		return info, "info", timeoutCause("it has said who it is only after %v, twice", info.took)
	}
	return info, "info", nil
}

// readFit is readInfo of a server that is fit.
func (m *master) readFit(l *link) (Info, error) {
	info, err := m.readInfo(l)
	if err == nil {
		err = info.verdict(m.cfg.allowEviction)
	}
	return info, err
}

func (m *master) login(l *link) (op string, err error) {
	if m.cfg.password != "" {
		args := []any{m.cfg.password}
		if m.cfg.user != "" {
			args = []any{m.cfg.user, m.cfg.password}
		}
		if _, err := l.do("AUTH", args...); err != nil {
			return "auth", err
		}
	}
	if m.cfg.database != 0 {
		if _, err := l.do("SELECT", m.cfg.database); err != nil {
			return "select", err
		}
	}
	return "", nil
}

func (m *master) readInfo(l *link) (Info, error) {
	info, _, err := m.readInfoText(l)
	return info, err
}

// readInfoText returns the reply of INFO as well.
func (m *master) readInfoText(l *link) (Info, string, error) {
	start := m.cfg.clock.Now()
	asked := start
	text, err := redis.String(l.do("INFO"))
	if err != nil {
		return Info{}, "", m.infoError(err)
	}
	info := parseInfo(text)
	info.asked, info.took = asked, m.cfg.clock.Since(asked)
	if info.Time == 0 { // a server whose INFO has no clock
		info.noClock = true
		start = m.cfg.clock.Now()
		if info.Time, err = parseTime(l.do("TIME")); err != nil {
			return Info{}, "", fmt.Errorf("TIME: %w", err)
		}
	}
	info.RTT = m.cfg.clock.Since(start)
	info.Read = start.Add(info.RTT / 2)
	return info, text, nil
}

// infoError tells a user without the right to INFO from everything else.
func (m *master) infoError(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		switch replyCode(reply) {
		case "NOPERM":
			return infoDenied(m.cfg.user, reply)
		case "NOAUTH":
			return fmt.Errorf("%w (no password is configured for this master)", reply)
		}
	}
	return err
}

// parseTime reads the reply of TIME, in microseconds.
func parseTime(reply any, err error) (int64, error) {
	parts, err := redis.Int64s(reply, err)
	if err != nil {
		return 0, err
	}
	if len(parts) != 2 {
		return 0, fmt.Errorf("unexpected reply of %d elements", len(parts))
	}
	return parts[0]*int64(time.Second/time.Microsecond) + parts[1], nil
}

// loadScripts caches the scripts. A user who may not is not refused: the first call of each script is then answered
// by NOSCRIPT, and is sent again with its text.
//
// They are written while the replies are read, in one round trip: over a connection without a buffer a writer that
// does not read blocks for ever.
func loadScripts(l *link) error {
	written := make(chan error, 1)
	go func() { written <- writeScripts(l) }()
	first := readLoaded(l)
	if first != nil {
		l.close() // ends the writer, too
	}
	if err := <-written; first == nil {
		first = err
	}
	return first
}

func writeScripts(l *link) error {
	for _, s := range scripts.All {
		if err := l.conn.Send("SCRIPT", "LOAD", s.Text); err != nil {
			return err
		}
	}
	return l.flush()
}

func readLoaded(l *link) error {
	for _, s := range scripts.All {
		sha, err := redis.String(l.receive())
		var reply redis.Error
		switch {
		case errors.As(err, &reply) && replyCode(reply) == "NOPERM":
		case err != nil:
			return err
		case sha != s.SHA:
			return fmt.Errorf("%s: the server's SHA-1 is %.40q, not %s", s.Name, sha, s.SHA)
		}
	}
	return nil
}

package pool

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// flushAt bounds what a buffered connection collects before it writes.
const flushAt = 64 << 10

// A buffered connection collects what redigo writes (4 KiB at a time) until it is told that a batch is complete, so
// that a batch costs one system call. It also drops deadlines: redigo sets one before each reply, and here overdue
// connections are closed by the session instead. One goroutine at a time may use Write and complete.
type buffered struct {
	*frugal          // what is read goes through it
	raw     net.Conn // below TLS
	buf     []byte
}

func (b *buffered) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < flushAt {
		return len(p), nil
	}
	if err := b.complete(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (b *buffered) complete() error {
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

func (b *buffered) SetDeadline(time.Time) error      { return nil }
func (b *buffered) SetReadDeadline(time.Time) error  { return nil }
func (b *buffered) SetWriteDeadline(time.Time) error { return nil }

// Close closes the connection below TLS: saying good-bye over TLS may block, and there is nobody who needs it.
func (b *buffered) Close() error { return b.raw.Close() }

// A link is one connection as redigo shows it, together with what redigo does not tell.
type link struct {
	conn redis.Conn
	buf  *buffered // nil where the connection was made by a *redis.Pool
	// timed: the connection can receive without a timeout of its own.
	timed  redis.ConnWithTimeout
	closed atomic.Bool
}

func newLink(nc, raw net.Conn) *link {
	buf := &buffered{frugal: newFrugal(nc), raw: raw}
	l := wrapLink(redis.NewConn(buf, 0, 0))
	l.buf = buf
	return l
}

func wrapLink(c redis.Conn) *link {
	l := &link{conn: c}
	l.timed, _ = c.(redis.ConnWithTimeout)
	return l
}

func (l *link) flush() error {
	if err := l.conn.Flush(); err != nil || l.buf == nil {
		return err
	}
	return l.buf.complete()
}

func (l *link) receive() (any, error) {
	if l.timed != nil {
		return l.timed.ReceiveWithTimeout(0)
	}
	return l.conn.Receive()
}

// errorReply is the error that a server has replied, where err is one, after which the connection goes on. redigo returns it as
// it is. An error that only wraps such a one ends the connection, and must not be taken for a reply: the next reply would
// go to the wrong call.
func errorReply(err error) (redis.Error, bool) {
	reply, isReply := err.(redis.Error) //nolint:errorlint // see above: not one that is wrapped
	return reply, isReply
}

// do sends one command and waits for its reply. Only the handshake uses it.
func (l *link) do(cmd string, args ...any) (any, error) {
	if err := l.conn.Send(cmd, args...); err != nil {
		return nil, err
	}
	if err := l.flush(); err != nil {
		return nil, err
	}
	return l.receive()
}

// close ends the connection and whatever read or write is under way. It may be called at any time, more than once. A
// connection of our own is closed directly: redigo's Close takes a lock, and closes through TLS.
func (l *link) close() {
	if l.closed.Swap(true) {
		return
	}
	if l.buf != nil {
		_ = l.buf.raw.Close() // the peer may be gone; there is nothing to do about it
	}
	_ = l.conn.Close()
}

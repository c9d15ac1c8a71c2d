// Package wire is one connection to a server: how it is made with redigo, and what may pass over it.
package wire

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// FlushAt bounds what a connection collects before it writes, in bytes.
const FlushAt = 64 << 10

// buffered collects what redigo writes, 4 KiB at a time, until it is told that a batch is complete, so that a batch
// costs one system call. It also drops the deadlines that redigo sets before each reply: overdue connections are
// closed instead. One goroutine at a time may use Write and complete.
type buffered struct {
	*frugal          // what is read goes through it
	raw     net.Conn // below TLS
	buf     []byte
}

func (b *buffered) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < FlushAt {
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

// Close closes the connection below TLS: saying good-bye over TLS may block, and nobody needs it.
func (b *buffered) Close() error { return b.raw.Close() }

// Conn is one connection. One goroutine may send while another receives; Close may be called by any.
type Conn struct {
	conn   redis.Conn
	buf    *buffered // nil where a *redis.Pool made the connection
	timed  redis.ConnWithTimeout
	closed atomic.Bool
}

// NewConn speaks over nc. raw is the connection below TLS, or nc itself.
func NewConn(nc, raw net.Conn) *Conn {
	buf := &buffered{frugal: newFrugal(nc), raw: raw}
	c := wrap(redis.NewConn(buf, 0, 0))
	c.buf = buf
	return c
}

func wrap(conn redis.Conn) *Conn {
	c := &Conn{conn: conn}
	c.timed, _ = conn.(redis.ConnWithTimeout)
	return c
}

// ForMessages narrows the bounds of replies to what comes on a subscription connection. It is called before the first
// reply that is a message.
func (c *Conn) ForMessages() {
	if c.buf != nil {
		c.buf.forMessages()
	}
}

// Send collects one command.
func (c *Conn) Send(command string, args ...any) error { return c.conn.Send(command, args...) }

// Flush writes what was collected.
func (c *Conn) Flush() error {
	if err := c.conn.Flush(); err != nil || c.buf == nil {
		return err
	}
	return c.buf.complete()
}

// Receive waits for the next reply, for as long as it takes. An error reply is a value of the type redis.Error; any
// error means that the connection is of no more use.
func (c *Conn) Receive() (value any, err error) {
	if c.timed != nil {
		value, err = c.timed.ReceiveWithTimeout(0)
	} else {
		value, err = c.conn.Receive()
	}
	// An error that only wraps a redis.Error ends the connection: as a reply it would shift all that follow.
	if reply, isReply := err.(redis.Error); isReply { //nolint:errorlint // see above
		return reply, nil
	}
	return value, err
}

// Ask sends one command and waits for its reply, as Receive returns it.
func (c *Conn) Ask(command string, args ...any) (any, error) {
	if err := c.Send(command, args...); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Do is Ask that returns an error reply as the error.
func (c *Conn) Do(command string, args ...any) (any, error) {
	value, err := c.Ask(command, args...)
	if reply, isReply := value.(redis.Error); isReply {
		return nil, reply
	}
	return value, err
}

// Close ends the connection and whatever read or write is under way. It may be called more than once. A connection of
// our own is closed directly: redigo's Close takes a lock, and closes through TLS.
func (c *Conn) Close() {
	if c.closed.Swap(true) {
		return
	}
	if c.buf != nil {
		_ = c.buf.raw.Close() // the peer may be gone; there is nothing to do about it
	}
	_ = c.conn.Close()
}

package wire

import (
	"bufio"
	"cmp"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// FlushAt bounds what a connection collects before it writes, in bytes.
const FlushAt = 64 << 10

// buffered collects what redigo writes, 4 KiB at a time, so that a batch costs one system call.
type buffered struct {
	frugal          // what is read goes through it
	raw    net.Conn // below TLS
	out    *bufio.Writer
}

func (b *buffered) Write(p []byte) (int, error) { return b.out.Write(p) }

// SetReadDeadline does nothing: redigo calls it before each reply, and overdue connections are closed instead.
func (b *buffered) SetReadDeadline(time.Time) error { return nil }

// Close closes the connection below TLS: saying good-bye over TLS may block, and nobody needs it.
func (b *buffered) Close() error { return b.raw.Close() }

// Conn is one connection. One goroutine may send while another receives; Close may be called by any.
type Conn struct {
	Addr   string // that was dialled; "" where a *redis.Pool made the connection
	conn   redis.Conn
	buf    *buffered // nil where a *redis.Pool made the connection
	closed atomic.Bool
}

// NewConn speaks over nc. raw is the connection below TLS, or nc itself.
func NewConn(nc, raw net.Conn) *Conn {
	buf := &buffered{frugal: frugal{Conn: nc}, raw: raw, out: bufio.NewWriterSize(nc, FlushAt)}
	return &Conn{conn: redis.NewConn(buf, 0, 0), buf: buf}
}

// Send collects one command.
func (c *Conn) Send(command string, args ...any) error { return c.conn.Send(command, args...) }

// Flush writes what was collected.
func (c *Conn) Flush() error {
	if err := c.conn.Flush(); err != nil || c.buf == nil {
		return err
	}
	return c.buf.out.Flush()
}

// Raw reports whether Write may be used: not over a connection that a *redis.Pool made.
func (c *Conn) Raw() bool { return c.buf != nil }

// Write writes encoded commands at once. What Send has collected must be flushed before.
func (c *Conn) Write(commands []byte) error {
	_, err := c.buf.Conn.Write(commands)
	return err
}

// Receive waits for the next reply, for as long as it takes. An error reply is a value of the type redis.Error; any
// error means that the connection is of no more use.
func (c *Conn) Receive() (value any, err error) {
	if timed, ok := c.conn.(redis.ConnWithTimeout); ok {
		value, err = timed.ReceiveWithTimeout(0)
	} else {
		value, err = c.conn.Receive()
	}
	// An error that only wraps a redis.Error ends the connection: as a reply it would shift all that follow.
	if reply, isReply := err.(redis.Error); isReply { //nolint:errorlint // see above
		return reply, nil
	}
	return value, err
}

// A Question is one command of [Conn.Ask], and what is done with its reply, which may be a redis.Error.
type Question struct {
	Op       string // what has failed, where TakeFunc returns an error
	Command  []any
	TakeFunc func(reply any) error
}

// Ask sends all commands and takes their replies in order, in one round trip. It ends with the first error, of a
// TakeFunc or of the connection, which is closed then, and says what has failed. It writes while it reads: over a
// connection without a buffer, a writer that does not read blocks for ever.
func (c *Conn) Ask(list []Question) (op string, err error) {
	written := make(chan error, 1)
	go func() { written <- c.write(list) }()
	for _, q := range list {
		op = q.Op
		reply, err := c.Receive()
		if err == nil {
			err = q.TakeFunc(reply)
		}
		if err != nil {
			c.Close() // ends the writer, too
			return op, cmp.Or(err, <-written)
		}
	}
	return op, <-written
}

func (c *Conn) write(list []Question) error {
	for _, q := range list {
		if err := c.Send(q.Command[0].(string), q.Command[1:]...); err != nil {
			return err
		}
	}
	return c.Flush()
}

// Close ends the connection and whatever read or write is under way. It may be called more than once.
func (c *Conn) Close() {
	if !c.closed.Swap(true) {
		_ = c.conn.Close() // the peer may be gone; there is nothing to do about it
	}
}

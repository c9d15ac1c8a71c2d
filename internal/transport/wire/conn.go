package wire

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
)

// Conn is one connection. One goroutine may send while another receives; any goroutine may call Close.
type Conn struct {
	Addr   string // the dialled address; "" if a *redis.Pool made the connection
	conn   redis.Conn
	direct *frugal // nil if a *redis.Pool made the connection
	closed atomic.Bool
}

// NewConn returns a Conn over nc. raw is the connection below TLS, or nc itself.
func NewConn(nc, raw net.Conn) *Conn {
	direct := &frugal{Conn: nc, raw: raw}
	return &Conn{conn: redis.NewConn(direct, 0, 0), direct: direct}
}

// Local returns the address of this end of the connection, or "" if it has none or a *redis.Pool made the connection.
func (c *Conn) Local() string {
	if c.direct == nil || c.direct.LocalAddr() == nil {
		return ""
	}
	return c.direct.LocalAddr().String()
}

// Certificates returns the certificates that the server has presented. Without TLS, or if a *redis.Pool made the
// connection, there are none.
func (c *Conn) Certificates() []*x509.Certificate {
	if c.direct == nil {
		return nil
	}
	secure, ok := c.direct.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	return secure.ConnectionState().PeerCertificates
}

// Write writes encoded commands.
func (c *Conn) Write(commands []byte) error {
	if c.direct != nil {
		_, err := c.direct.Write(commands)
		return err
	}
	for len(commands) > 0 { // redigo encodes the commands itself
		var words []string
		words, commands = frame.Next(commands)
		if err := c.conn.Send(words[0], redis.Args{}.AddFlat(words[1:])...); err != nil {
			return err
		}
	}
	return c.conn.Flush()
}

// Receive waits for the next reply, without a timeout. An error reply is a value of type redis.Error; an error means
// that the connection is unusable.
func (c *Conn) Receive() (value any, err error) {
	if timed, ok := c.conn.(redis.ConnWithTimeout); ok {
		value, err = timed.ReceiveWithTimeout(0)
	} else {
		value, err = c.conn.Receive()
	}
	if reply, isReply := err.(redis.Error); isReply { //nolint:errorlint // one that is only wrapped ends the connection
		return reply, nil
	}
	return value, err
}

// A Question is one command of [Conn.Ask], with the function that handles its reply, which may be a redis.Error.
type Question struct {
	Op       string // name of the operation, for errors
	Command  []string
	TakeFunc func(reply any) error
}

// Optional returns a question whose reply never ends the connection. If the server refuses the command, for whatever
// reason, handleFunc gets the error reply as refusal; otherwise refusal is "".
func Optional(op string, handleFunc func(reply any, refusal redis.Error), command ...string) Question {
	return Question{Op: op, Command: command, TakeFunc: func(reply any) error {
		refusal, _ := reply.(redis.Error)
		handleFunc(reply, refusal)
		return nil
	}}
}

// ConfigGet returns an optional question that reads the settings that match pattern.
func ConfigGet(pattern string, readFunc func(settings map[string]string, err error)) Question {
	return Optional("config get", func(reply any, _ redis.Error) { readFunc(redis.StringMap(reply, nil)) },
		"CONFIG", "GET", pattern)
}

// Refusal returns reply if it is an error reply, and nil otherwise.
func Refusal(reply any) error {
	if refusal, refused := reply.(redis.Error); refused {
		return refusal
	}
	return nil
}

// Ask sends all commands and handles their replies in order, in one round trip. At the first error of a TakeFunc or of
// the connection, Ask closes the connection and returns the operation that failed. Ask writes and reads concurrently:
// on an unbuffered connection, a peer blocks until its replies are read, and would block the writer forever.
func (c *Conn) Ask(list []Question) (op string, err error) {
	if len(list) == 0 { // to write nothing can fail too, and there is no operation to name
		return "", nil
	}
	written := make(chan error, 1)
	go func() {
		var commands []byte
		for _, q := range list {
			commands = frame.Command(q.Op, q.Command...).Append(commands, "", false)
		}
		written <- c.Write(commands)
	}()
	for _, q := range list {
		op = q.Op
		reply, err := c.Receive()
		if err == nil {
			err = q.TakeFunc(reply)
		}
		if err != nil {
			c.Close() // also ends the writer
			return op, cmp.Or(err, <-written)
		}
	}
	return op, <-written
}

// Close closes the connection and ends any read or write under way. It may be called more than once.
func (c *Conn) Close() {
	if !c.closed.Swap(true) {
		_ = c.conn.Close() // an error does not matter: the peer may be gone
	}
}

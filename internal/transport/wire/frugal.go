package wire

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Bounds of one reply. The longest reply is that of INFO: some kilobytes, or more with many databases or replicas.
const (
	MaxReply = 1 << 20 // bytes of all bulk strings plus twice the bytes of all lines, which redigo reads in pieces

	maxLine  = 16 << 10 // bytes of a status, an error, a number
	maxParts = 1024     // elements of all arrays
)

// errReplySize is the error of a connection whose server sends data that is not a reply, or a reply that exceeds the
// bounds.
var errReplySize = fault.New("a reply is too large for this connection, or malformed", fault.NotRESP)

// frugal is the connection from which redigo reads. It protects against a server that is hostile or not a Redis server:
// redigo allocates any length that a reply announces, and reads arrays of any depth. frugal reads the announced lengths
// before redigo does, and fails if a length is out of bounds. Connections made by a *redis.Pool cannot be inspected,
// and are trusted.
type frugal struct {
	net.Conn
	raw   net.Conn // the connection below TLS
	head  []byte   // start of the present line, if its end has not been read
	skip  int      // unread bytes of a bulk string, including its line end
	left  int      // number of elements of this reply that have not been read
	parts int      // number of elements that the arrays of this reply have announced
	alien string   // a line, or the start of one, that is no reply of Redis; "" if there was none
	size  int      // bytes of the bulk strings of this reply plus twice the bytes of its lines
}

// SetReadDeadline does nothing. redigo calls it before each reply, but connections have no deadlines: an overdue
// connection is closed.
func (f *frugal) SetReadDeadline(time.Time) error { return nil }

// Close closes the connection below TLS, because the closing handshake of TLS may block and is not needed.
func (f *frugal) Close() error { return f.raw.Close() }

// Read reads from the connection, and fails if a length in the data is out of bounds.
func (f *frugal) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.scan(p[:n]) {
		if f.alien != "" {
			return 0, fmt.Errorf("%w: it answered %.60q", errReplySize, f.alien)
		}
		return 0, errReplySize
	}
	return n, err
}

// scan reports whether all lengths announced in p are within bounds. A line that is in p as a whole is not copied.
func (f *frugal) scan(p []byte) bool {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			f.head = append(f.head, p...)
			if c := f.head[0]; c >= ' ' && c <= '~' && !isKind(c) { // not the alert of a port for TLS, which closes
				f.alien = string(f.head)
			}
			return f.alien == "" && len(f.head) <= maxLine
		}
		line := p[:n]
		if len(f.head) > 0 {
			line = append(f.head, line...)
			f.head = line[:0]
		}
		if len(line) > maxLine || !f.announced(line) {
			return false
		}
		p = p[n+1:]
	}
	return true
}

// isKind reports whether a reply or an element of a reply may begin with c.
func isKind(c byte) bool { return strings.IndexByte("$*+-:", c) >= 0 }

// announced reports whether line, the first line of a reply or of an element of a reply, is within bounds.
func (f *frugal) announced(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	if f.left == 0 { // a reply begins
		f.left, f.parts, f.size = 1, 0, 0
	}
	f.left--
	kind := line[0]
	switch kind {
	case '$', '*':
	case '+', '-', ':':
		f.size += 2 * len(line)
		return f.size <= MaxReply
	default:
		f.alien = string(line)
		return false
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(line[1:], []byte("\r"))))
	switch {
	case err != nil || n < -1:
		return false
	case n == -1:
	case kind == '*':
		f.left, f.parts = f.left+n, f.parts+n
		return n <= maxParts && f.parts <= maxParts
	case n > MaxReply-f.size:
		return false
	default:
		f.skip, f.size = n+len("\r\n"), f.size+n
	}
	return true
}

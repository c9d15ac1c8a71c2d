package wire

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// The bounds of one reply. The longest is the text of INFO: some kilobytes, or more with many databases or replicas.
const (
	MaxReply = 1 << 20 // bytes of all bulk strings, and twice those of all lines

	maxLine  = 16 << 10 // bytes of a status, an error, a number
	maxParts = 1024     // elements of all arrays
)

// ErrReplySize ends a connection whose server sends something else than replies of the expected size.
var ErrReplySize = errors.New("a reply is larger than any that is due on this connection, or is none")

// frugal protects against a server that is hostile, or is no Redis at all: redigo makes room for whatever length a
// reply announces, and follows nested arrays without end. frugal reads the announcements before redigo does, and fails
// where one is out of bounds. A connection that a *redis.Pool made is not ours to look into, and is trusted.
type frugal struct {
	net.Conn
	head  []byte // the present line so far, where it came in pieces
	skip  int    // bytes of a bulk string that are still to come, with its line end
	left  int    // elements of this reply that are still to come
	parts int    // elements that its arrays have announced
	size  int    // bulk strings of it so far, and twice its lines: redigo reads those in pieces
}

func (f *frugal) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.scan(p[:n]) {
		return 0, ErrReplySize
	}
	return n, err
}

// scan reports whether all that p announces is within bounds. A line in one piece costs one search for its end.
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
			return len(f.head) <= maxLine
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

// announced checks the first line of a reply, or of an element of one.
func (f *frugal) announced(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	if f.left == 0 { // a reply begins
		f.left, f.parts, f.size = 1, 0, 0
	}
	f.left--
	kind := line[0]
	if kind != '$' && kind != '*' {
		f.size += 2 * len(line)
		return f.size <= MaxReply
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

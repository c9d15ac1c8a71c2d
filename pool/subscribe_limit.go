package pool

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// The bounds of one reply on a subscription connection.
const (
	maxReplyLine  = 16 << 10
	maxReplyBulk  = 2 * maxChannel
	maxReplyParts = 8
)

var errReplySize = errors.New("a reply is larger than any on a subscription connection, or is none")

// frugal is a connection whose reader is safe from a server that means harm, or is no Redis at all: redigo makes room
// for whatever length a reply announces, and follows nested arrays without end. So the announcements are looked at
// before redigo gets them, and a connection with one that is out of bounds ends. A connection that was made by a
// *redis.Pool is not ours to look into, and is trusted.
type frugal struct {
	net.Conn
	head  []byte // of the line that has begun: as much of it as can matter
	line  int    // its length
	skip  int    // bytes of a bulk string that are still to come, its line end included
	parts int    // elements of an array that are still to come
}

func (f *frugal) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.scan(p[:n]) {
		return 0, errReplySize
	}
	return n, err
}

// scan reports whether all that p announces is within bounds.
func (f *frugal) scan(p []byte) bool {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := bytes.IndexByte(p, '\n')
		part := p
		if n >= 0 {
			part = p[:n]
		}
		if f.line += len(part); f.line > maxReplyLine {
			return false
		}
		const enough = 32 // no length has more digits
		f.head = append(f.head, part[:min(len(part), max(0, enough-len(f.head)))]...)
		if n < 0 {
			return true
		}
		if !f.announced() {
			return false
		}
		f.head, f.line = f.head[:0], 0
		p = p[n+1:]
	}
	return true
}

// announced looks at the first line of a reply, or of an element of one.
func (f *frugal) announced() bool {
	if len(f.head) == 0 {
		return false
	}
	kind, nested := f.head[0], f.parts > 0
	if nested {
		f.parts--
	}
	if kind != '$' && kind != '*' {
		return true
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(f.head[1:], []byte("\r"))))
	switch {
	case err != nil || n < -1:
		return false
	case kind == '*':
		f.parts = max(n, 0)
		return !nested && n <= maxReplyParts
	case n >= 0:
		f.skip = n + len("\r\n")
	}
	return n <= maxReplyBulk
}

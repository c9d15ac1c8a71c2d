package pool

import (
	"bytes"
	"errors"
	"net"
	"strconv"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The bounds of one reply. The text of INFO is the largest that a call is answered with, some kilobytes by rule, more
// on a server with many databases, modules or replicas; a message has a channel in it.
const (
	maxReplyLine = 16 << 10 // of a status, an error, a number

	maxCallReply = 1 << 20              // of all bulk strings of a reply to a call, and twice the lines in its arrays
	maxCallParts = scripts.MostTogether // elements of an array; those that are arrays have none in them

	maxReplyBulk  = 2 * maxChannel // the same on a subscription connection
	maxReplyParts = 8
)

var errReplySize = errors.New("a reply is larger than any that is due on this connection, or is none")

// frugal is a connection whose reader is safe from a server that means harm, or is no Redis at all: redigo makes room
// for whatever length a reply announces, and follows nested arrays without end. So the announcements are looked at
// before redigo gets them, and a connection with one that is out of bounds ends. What redigo makes room for is thereby
// at most the bounds above. A connection that was made by a *redis.Pool is not ours to look into, and is trusted.
type frugal struct {
	net.Conn
	most  int  // bytes of the bulk strings of one reply
	wide  int  // elements of an array
	deep  bool // there may be arrays in an array
	head  []byte
	line  int  // length of the line that has begun; head is as much of it as can matter
	skip  int  // bytes of a bulk string that are still to come, its line end included
	parts int  // elements of an array that are still to come
	outer int  // the same of the array around it; 0 where there is none, or no more
	inner bool // there is an array around it
	size  int  // of the bulk strings of this reply so far, and twice the lines in its arrays
}

// newFrugal is for the replies to calls.
func newFrugal(c net.Conn) *frugal {
	return &frugal{Conn: c, most: maxCallReply, wide: maxCallParts, deep: true}
}

// forMessages narrows the bounds to what comes on a subscription connection. It is called before the first read.
func (f *frugal) forMessages() { f.most, f.wide, f.deep = maxReplyBulk, maxReplyParts, false }

func (f *frugal) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.scan(p[:n]) {
		return 0, errReplySize
	}
	return n, err
}

// scan reports whether all that p announces is within bounds. Nearly all replies are short and in one piece: they cost
// one search for the line's end.
func (f *frugal) scan(p []byte) bool {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := bytes.IndexByte(p, '\n')
		if n >= 0 && f.line == 0 {
			if n > maxReplyLine || !f.announced(p[:n], n) {
				return false
			}
			p = p[n+1:]
			continue
		}
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
		if !f.announced(f.head, f.line) {
			return false
		}
		f.head, f.line = f.head[:0], 0
		p = p[n+1:]
	}
	return true
}

// announced looks at the first line of a reply, or of an element of one, which has this length.
func (f *frugal) announced(line []byte, length int) bool {
	if len(line) == 0 {
		return false
	}
	kind, nested, inner := line[0], f.parts > 0, false
	if nested {
		f.parts--
		if inner = f.inner; f.parts == 0 && inner {
			f.parts, f.outer, f.inner = f.outer, 0, false
		}
	} else {
		f.size = 0
	}
	if kind != '$' && kind != '*' {
		f.size += 2 * length // redigo reads it in pieces
		return !nested || f.size <= f.most
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(line[1:], []byte("\r"))))
	switch {
	case err != nil || n < -1:
		return false
	case kind == '*' && (n > f.wide || inner || nested && !f.deep):
		return false
	case kind == '*' && n > 0:
		f.parts, f.outer, f.inner = n, f.parts, nested
	case kind == '$' && n > f.most-f.size:
		return false
	case kind == '$' && n >= 0:
		f.skip, f.size = n+len("\r\n"), f.size+n
	}
	return true
}

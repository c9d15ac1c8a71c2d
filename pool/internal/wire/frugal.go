package wire

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// The bounds of one reply. The longest reply to a call is the text of INFO: some kilobytes, or more on a server with
// many databases, modules or replicas. A message contains a channel.
const (
	MaxChannel = 128 << 10 // bytes of a channel's name
	MaxReply   = 1 << 20   // bytes of all bulk strings of a reply to a call, and twice the lines in its arrays

	maxLine  = 16 << 10 // of a status, an error, a number
	maxParts = 32       // elements of an array; those that are arrays contain none

	maxMessage      = 2 * MaxChannel // the same on a subscription connection
	maxMessageParts = 8
)

// ErrReplySize ends a connection whose server sends something else than replies of the expected size.
var ErrReplySize = errors.New("a reply is larger than any that is due on this connection, or is none")

// frugal protects against a server that is hostile, or is no Redis at all: redigo makes room for whatever length a
// reply announces, and follows nested arrays without end. frugal reads the announcements before redigo does, and fails
// where one is out of bounds. A connection that a *redis.Pool made is not ours to look into, and is trusted.
type frugal struct {
	net.Conn
	most  int    // bytes of the bulk strings of one reply
	wide  int    // elements of an array
	deep  bool   // an array may contain arrays
	head  []byte // as much of the present line as can matter
	line  int    // length of the present line so far
	skip  int    // bytes of a bulk string that are still to come, with its line end
	parts int    // elements of the present array that are still to come
	outer int    // the same of the array around it
	inner bool   // there is an array around it
	size  int    // bulk strings of this reply so far, and twice the lines in its arrays
}

func newFrugal(c net.Conn) *frugal {
	return &frugal{Conn: c, most: MaxReply, wide: maxParts, deep: true}
}

func (f *frugal) forMessages() { f.most, f.wide, f.deep = maxMessage, maxMessageParts, false }

func (f *frugal) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.scan(p[:n]) {
		return 0, ErrReplySize
	}
	return n, err
}

// scan reports whether all that p announces is within bounds. Nearly all replies are short and in one piece: they cost
// one search for the end of the line.
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
			if n > maxLine || !f.announced(p[:n], n) {
				return false
			}
			p = p[n+1:]
			continue
		}
		part := p
		if n >= 0 {
			part = p[:n]
		}
		if f.line += len(part); f.line > maxLine {
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

// announced checks the first line of a reply, or of an element of one, which has this length.
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

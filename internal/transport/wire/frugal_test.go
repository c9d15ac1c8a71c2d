package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// confirmations returns the replies of a server to SUBSCRIBE for these channels.
func confirmations(channels ...string) string {
	var b strings.Builder
	for i, channel := range channels {
		fmt.Fprintf(&b, "*3\r\n%s%s:%d\r\n", bulk("subscribe"), bulk(channel), i)
	}
	return b.String()
}

// Valid replies are accepted regardless of how they are split, and an invalid reply is detected at any position.
func TestFrugalConnectionScansAnyPieces(t *testing.T) {
	legal := confirmations("a", "bb\r\n$999999999\r\n", "") + "+PONG\r\n-ERR what\r\n:12\r\n$-1\r\n*-1\r\n*0\r\n" +
		bulk(strings.Repeat("x", MaxReply/2)) + "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	bad := "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1048577\r\n"
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := &frugal{}
		scan := func(text string) bool {
			for len(text) > 0 {
				n := min(len(text), 1+rnd.IntN(1+rnd.IntN(40)))
				if rnd.IntN(50) == 0 {
					n = min(len(text), 100_000)
				}
				if !f.scan([]byte(text[:n])) {
					return false
				}
				text = text[n:]
			}
			return true
		}
		for range 2 { // the first pass must not leave any state behind
			if !scan(legal) {
				t.Fatalf("seed %d: a valid reply was refused", seed)
			}
		}
		if scan(bad) {
			t.Fatalf("seed %d: an invalid reply was accepted", seed)
		}
	}
}

// The elements of all arrays of a reply are counted, regardless of how the reply is split. The count starts again
// with the next reply.
func TestFrugalCountsElementsOfAllArrays(t *testing.T) {
	numbers := func(n int) string { return fmt.Sprintf("*%d\r\n", n) + strings.Repeat(":1\r\n", n) }
	for text, fine := range map[string]bool{
		"*3\r\n*2\r\n:1\r\n$1\r\nx\r\n:1\r\n*1\r\n:3\r\n:9\r\n*1\r\n*1\r\n:1\r\n": true,
		"*2\r\n*0\r\n*1\r\n:1\r\n*1\r\n*-1\r\n:1\r\n":                             true,
		numbers(maxParts) + numbers(maxParts):                                     true,
		"*2\r\n" + numbers(600) + numbers(422):                                    true,
		"*2\r\n" + numbers(600) + numbers(423):                                    false,
		fmt.Sprintf("*%d\r\n", maxParts+1):                                        false,
		strings.Repeat("*1\r\n", maxParts+1):                                      false,
		"*9223372036854775807\r\n":                                                false,
		"*1\r\n*9223372036854775807\r\n":                                          false,
	} {
		for _, size := range []int{1, 2, 3, 5, 7, 11, 100, len(text)} {
			f, ok := &frugal{}, true
			for rest := text; rest != "" && ok; rest = rest[min(size, len(rest)):] {
				ok = f.scan([]byte(rest[:min(size, len(rest))]))
			}
			if ok != fine {
				t.Errorf("scan of %.40q in pieces of %d returned %v", text, size, ok)
			}
		}
	}
}

// A script is a connection that returns its text in pieces of n bytes.
type script struct {
	net.Conn
	text []byte
	n    int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func (s *script) Close() error { return nil }

// For any bytes, split in any way, replies are read until the connection ends. The replies do not depend on how the
// bytes are split, and no reply exceeds the limits.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		":1\r\n", "+OK\r\n-ERR no\r\n", "*4\r\n:2\r\n:100\r\n$1\r\n7\r\n:1700000000000000\r\n", "$-1\r\n*-1\r\n*0\r\n",
		"$5\r\nhello\r\n$5\r\nhel", "*2\r\n*1\r\n:1\r\n",
		"$999999999\r\n", "*17\r\n", ":99999999999999999999\r\n", "\r\n", "+\n", "$3\r\nab\r\n\r\n", "$0\r\n\r\n", "$-0\r\n",
		"*+1\r\n:1\r\n",
	} {
		f.Add([]byte(seed), uint16(1))
		f.Add([]byte(seed), uint16(4096))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		whole, piecewise := replies(t, text, 1<<16), replies(t, text, int(n)+1)
		// After an invalid length the rest of the piece is discarded, so one list may be longer, but both have the same
		// beginning.
		if k := min(len(whole), len(piecewise)); !reflect.DeepEqual(whole[:k], piecewise[:k]) {
			t.Fatalf("the bytes, split in two ways, are read as %q and %q", whole[:k], piecewise[:k])
		}
	})
}

func replies(t *testing.T, text []byte, n int) []any {
	t.Helper()
	list := []any{}
	from := &script{text: bytes.Clone(text), n: n}
	c := redis.NewConn(&frugal{Conn: from, raw: from}, 0, 0)
	for {
		value, err := c.Receive()
		var reply redis.Error
		if err != nil && !errors.As(err, &reply) {
			return list
		}
		if size := sizeOf(value); size > MaxReply {
			t.Fatalf("a reply has %d bytes, which is too large", size)
		}
		if list = append(list, value); len(list) > len(text) {
			t.Fatal("there are more replies than bytes")
		}
	}
}

func sizeOf(value any) (n int) {
	switch v := value.(type) {
	case []byte:
		return len(v)
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	}
	return n
}

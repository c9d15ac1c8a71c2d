package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// Refusing starts a relay to addr, which answers each command for which refuse returns a text with this error. It
// returns the address of the relay, which ends with the test.
func Refusing(t testing.TB, addr string, refuse func(words []string) string) string {
	t.Helper()
	return Answer(t, "127.0.0.1", func(in net.Conn) {
		out, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer out.Close()
		from, replies := bufio.NewReader(in), bufio.NewReader(out)
		for {
			raw, words, err := ReadCommand(from)
			if err != nil {
				return
			}
			if text := refuse(words); text != "" {
				raw = "-" + text + "\r\n"
			} else if _, err := io.WriteString(out, raw); err != nil {
				return
			} else if raw, err = ReadReply(replies); err != nil {
				return
			}
			if _, err := io.WriteString(in, raw); err != nil {
				return
			}
		}
	})
}

// ReadCommand reads a command, which is an array of bulk strings. It returns its bytes and its words.
func ReadCommand(r *bufio.Reader) (raw string, words []string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	n, err := strconv.Atoi(strings.Trim(line, "*\r\n"))
	raw = line
	for range n {
		bulk, err := ReadReply(r)
		if err != nil {
			return "", nil, err
		}
		_, word, _ := strings.Cut(bulk, "\r\n")
		raw, words = raw+bulk, append(words, strings.TrimSuffix(word, "\r\n"))
	}
	return raw, words, err
}

// ReadReply reads one reply, with all its elements.
func ReadReply(r *bufio.Reader) (raw string, err error) {
	raw, err = r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(raw[1:]))
	switch raw[0] {
	case '$':
		if n >= 0 {
			body := make([]byte, n+2)
			if _, err := io.ReadFull(r, body); err != nil {
				return "", err
			}
			raw += string(body)
		}
	case '*':
		for range n {
			part, err := ReadReply(r)
			if err != nil {
				return "", fmt.Errorf("element: %w", err)
			}
			raw += part
		}
	}
	return raw, nil
}

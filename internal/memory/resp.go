package memory

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A status is a simple string reply, such as OK. The other replies are int64, string, nil, []any and reference.Error.
type status string

// appendReply appends the RESP2 encoding of a reply.
func appendReply(b []byte, reply any) []byte {
	line := func(kind byte, text string) []byte {
		b = append(b, kind)
		b = append(b, text...)
		return append(b, "\r\n"...)
	}
	switch v := reply.(type) {
	case nil:
		return line('$', "-1")
	case int64:
		return line(':', strconv.FormatInt(v, 10))
	case int:
		return line(':', strconv.Itoa(v))
	case status:
		return line('+', string(v))
	case reference.Error:
		return line('-', strings.NewReplacer("\r", " ", "\n", " ").Replace(string(v)))
	case string:
		b = line('$', strconv.Itoa(len(v)))
		b = append(b, v...)
		return append(b, "\r\n"...)
	case []any:
		b = line('*', strconv.Itoa(len(v)))
		for _, e := range v {
			b = appendReply(b, e)
		}
		return b
	default:
		return line('-', "ERR the in-memory master has a reply of an unknown type")
	}
}

var errProtocol = errors.New("protocol error")

// Limits of Redis.
const (
	maxArgs = 1 << 20
	maxBulk = 512 << 20
)

// readCommand reads one command: an array of bulk strings, or an inline command.
func readCommand(r *bufio.Reader) ([]string, error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		count, isArray := strings.CutPrefix(line, "*")
		if !isArray {
			if words := strings.Fields(line); len(words) > 0 {
				return words, nil
			}
			continue
		}
		n, err := strconv.Atoi(count)
		if err != nil || n > maxArgs {
			return nil, errProtocol
		}
		if n <= 0 {
			continue
		}
		args := make([]string, 0, min(n, 64))
		for range n {
			arg, err := readBulk(r)
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		return args, nil
	}
}

func readBulk(r *bufio.Reader) (string, error) {
	line, err := readLine(r)
	if err != nil {
		return "", err
	}
	length, ok := strings.CutPrefix(line, "$")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n > maxBulk {
		return "", errProtocol
	}
	var b strings.Builder
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return "", err
	}
	if line, err := readLine(r); err != nil || line != "" {
		return "", errProtocol
	}
	return b.String(), nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

package memory

import (
	"errors"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A status is a simple string reply, such as OK. The other types of replies are int, int64, string, nil, []any and
// reference.Error.
type status string

// AppendReply appends the RESP2 encoding of a reply.
func AppendReply(b []byte, reply any) []byte {
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
			b = AppendReply(b, e)
		}
		return b
	default:
		return line('-', "ERR the in-memory master produced a reply of an unknown type")
	}
}

var errProtocol = errors.New("protocol error")

// Limits of the protocol in Redis.
const (
	maxArgs = 1 << 20
	maxBulk = 512 << 20
)

// Parse returns the complete commands at the start of text, which are arrays of bulk strings or inline commands, and
// the rest of text. The returned words share the memory of text.
func Parse(text string) (list [][]string, rest string, err error) {
	for text != "" {
		line, left, complete := cutLine(text)
		count, isArray := strings.CutPrefix(line, "*")
		switch {
		case !complete:
			return list, text, nil
		case !isArray:
			if words := strings.Fields(line); len(words) > 0 {
				list = append(list, words)
			}
			text = left
			continue
		}
		n, err := strconv.Atoi(count)
		if err != nil || n > maxArgs {
			return nil, "", errProtocol
		}
		args := make([]string, 0, max(0, min(n, 64)))
		for range n {
			arg, after, complete, err := cutBulk(left)
			if err != nil {
				return nil, "", err
			}
			if !complete {
				return list, text, nil
			}
			args, left = append(args, arg), after
		}
		if text = left; n > 0 {
			list = append(list, args)
		}
	}
	return list, "", nil
}

func cutBulk(text string) (arg, rest string, complete bool, err error) {
	line, rest, complete := cutLine(text)
	if !complete {
		return "", "", false, nil
	}
	length, ok := strings.CutPrefix(line, "$")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n > maxBulk {
		return "", "", false, errProtocol
	}
	switch {
	case len(rest) < n+2:
		return "", "", false, nil
	case rest[n:n+2] != "\r\n":
		return "", "", false, errProtocol
	}
	return rest[:n], rest[n+2:], true, nil
}

func cutLine(text string) (line, rest string, complete bool) {
	line, rest, complete = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest, complete
}

package sim

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A command is one command from a client; its words share the memory of the input.
type command []string

// parse splits the complete commands, arrays of bulk strings, off text, and returns the rest.
func parse(text string) (list []command, rest string, err error) {
	for text != "" {
		words, left, ok := header(text, '*')
		if !ok {
			return list, text, nil
		}
		if words < 1 {
			return nil, "", errProtocol
		}
		c := make(command, 0, words)
		for range words {
			size, after, ok := header(left, '$')
			if !ok || len(after) < size+2 {
				return list, text, nil
			}
			c = append(c, after[:size])
			left = after[size+2:]
		}
		list = append(list, c)
		text = left
	}
	return list, "", nil
}

// header parses a line of one kind with a number. A line of another kind has the length -1.
func header(text string, kind byte) (n int, rest string, ok bool) {
	end := strings.IndexByte(text, '\n')
	if end < 2 {
		return 0, "", false
	}
	if text[0] != kind {
		return -1, text, true
	}
	for _, d := range text[1 : end-1] {
		n = n*10 + int(d-'0')
	}
	return n, text[end+1:], true
}

// appendReply appends one reply: nil, an int, a string, an error, or an array of those.
func appendReply(b []byte, reply any) []byte {
	switch v := reply.(type) {
	case int64:
		b = append(b, ':')
		b = strconv.AppendInt(b, v, 10)
	case int:
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(v), 10)
	case string:
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(v)), 10)
		b = append(b, '\r', '\n')
		b = append(b, v...)
	case reference.Error:
		b = append(b, '-')
		b = append(b, v...)
	case []any:
		b = append(b, '*')
		b = strconv.AppendInt(b, int64(len(v)), 10)
		b = append(b, '\r', '\n')
		for _, e := range v {
			b = appendReply(b, e)
		}
		return b
	default:
		b = append(b, "$-1"...)
	}
	return append(b, '\r', '\n')
}

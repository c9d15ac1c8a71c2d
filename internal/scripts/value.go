package scripts

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/redlock-go/redlock/internal/frame"
)

// MaxValue is the maximum length of a value in bytes.
const MaxValue = 1 << 10

// A Value is a text that the holder of a lease shows to other clients, with a version that grows with each change. It
// has the form in which masters store it after the ballot of the lease. "" means that there is no value.
type Value string

// NewValue returns a value, or an error if text is too long or not UTF-8.
func NewValue(version int64, text string) (Value, error) {
	switch {
	case len(text) > MaxValue:
		return "", fmt.Errorf("the value has %d bytes, the maximum is %d", len(text), MaxValue)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("the value %.80q is not UTF-8: encode it, for example in hexadecimal", text)
	}
	return Value(string(frame.AppendDigits([]byte{' '}, version)) + " " + text), nil
}

// Next returns the value that replaces value, with the next version; the first one is 1. Its errors are those of
// NewValue.
func (value Value) Next(text string) (Value, error) {
	version := int64(0)
	if value != "" {
		version, _ = strconv.ParseInt(string(value[1:17]), 10, 64) // NewValue wrote 16 digits
	}
	return NewValue(version+1, text)
}

package frame

import (
	"bytes"
	"strconv"
)

// A Script is one Lua program.
type Script struct {
	Name string // for errors and traces
	SHA  string // of Text
	Text string
	// Once reports whether a call that the master has answered with NOSCRIPT, because it does not know the script, must
	// not be sent again behind later calls.
	Once bool
}

// A Call is one script with its arguments, or another command, encoded once for any number of masters. It must not be
// changed after its words have been added.
type Call struct {
	Script *Script
	body   []byte    // the words after the SHA-1 or the text of the script, as bulk strings, without the stamp
	words  int       // number of words in body
	split  int       // offset of the stamp in body; 0 if the call has no stamp
	room   [320]byte // the memory of body, unless the words are longer
}

// New returns a call of s with its keys. The caller then adds the arguments.
func New(s *Script, keys ...string) *Call {
	c := begin(s)
	c.Number(int64(len(keys)))
	return c.With(keys...)
}

// Command returns a call of a command that is not a script. op is the name of the command in errors.
func Command(op string, words ...string) *Call { return begin(&Script{Name: op}).With(words...) }

func begin(s *Script) *Call {
	c := &Call{Script: s}
	c.body = c.room[:0]
	return c
}

// With appends words, and returns c.
func (c *Call) With(words ...string) *Call {
	for _, w := range words {
		c.Text(w)
	}
	return c
}

// Text appends a word.
func (c *Call) Text(s string) {
	c.words++
	c.body = appendBulk(c.body, s)
}

// Number appends a decimal number.
func (c *Call) Number(n int64) {
	var room [20]byte
	c.words++
	c.body = appendBulk(c.body, strconv.AppendInt(room[:0], n, 10))
}

// Digits appends a number with at least sixteen digits, so that scripts can compare such numbers as text.
func (c *Call) Digits(n int64) {
	var room [20]byte
	c.words++
	c.body = appendBulk(c.body, AppendDigits(room[:0], n))
}

// Stamp marks the place in the call for the stamp of the master's admission record.
func (c *Call) Stamp() { c.split = len(c.body) }

// digits is the minimum number of digits that AppendDigits writes: enough for microseconds since 1970 until the year
// 2286.
const digits = 16

func appendBulk[T string | []byte](b []byte, s T) []byte {
	b = strconv.AppendInt(append(b, '$'), int64(len(s)), 10)
	b = append(append(b, '\r', '\n'), s...)
	return append(b, '\r', '\n')
}

// AppendDigits appends n with at least sixteen digits to b.
func AppendDigits(b []byte, n int64) []byte {
	var room [20]byte
	d := strconv.AppendInt(room[:0], max(n, 0), 10)
	for range digits - len(d) {
		b = append(b, '0')
	}
	return append(b, d...)
}

// Append appends the command for one master to b, with the stamp of its admission record. If asText is true, the
// command contains the text of the script instead of its SHA-1.
func (c *Call) Append(b []byte, stamp string, asText bool) []byte {
	n := c.words
	if c.split > 0 {
		n++
	}
	if c.Script.SHA == "" {
		return append(appendCount(b, n), c.body...)
	}
	b = appendCount(b, n+2)
	if asText {
		b = appendBulk(append(b, "$4\r\nEVAL\r\n"...), c.Script.Text)
	} else {
		b = append(append(append(b, "$7\r\nEVALSHA\r\n$40\r\n"...), c.Script.SHA...), "\r\n"...)
	}
	if c.split == 0 {
		return append(b, c.body...)
	}
	return append(appendBulk(append(b, c.body[:c.split]...), stamp), c.body[c.split:]...)
}

func appendCount(b []byte, n int) []byte {
	return append(strconv.AppendInt(append(b, '*'), int64(n), 10), '\r', '\n')
}

// Words returns the words of the command for one master.
func (c *Call) Words(stamp string, asText bool) []string {
	words, _ := Next(c.Append(nil, stamp, asText))
	return words
}

// Next returns the words of the first of several commands encoded by this package, and the remaining commands.
func Next(commands []byte) (words []string, rest []byte) {
	cutNumber := func() int {
		var digits []byte
		digits, commands, _ = bytes.Cut(commands[1:], []byte("\r\n"))
		n, _ := strconv.Atoi(string(digits)) // cannot fail: this package wrote it
		return n
	}
	for range cutNumber() {
		n := cutNumber()
		words, commands = append(words, string(commands[:n])), commands[n+2:]
	}
	return words, commands
}

// Args returns the command for one master in the form that redigo takes.
func (c *Call) Args(stamp string, asText bool) (command string, args []any) {
	words := c.Words(stamp, asText)
	for _, w := range words[1:] {
		args = append(args, w)
	}
	return words[0], args
}

// Arguments returns the KEYS and ARGV of the script for one master.
func (c *Call) Arguments(stamp string) (keys, argv []string) {
	words := c.Words(stamp, false)
	n, _ := strconv.Atoi(words[2])
	return words[3 : 3+n], words[3+n:]
}

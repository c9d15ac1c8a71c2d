package frame_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/frame"
)

func TestCallsAreEncoded(t *testing.T) {
	s := &frame.Script{Name: "s", SHA: strings.Repeat("a", 40), Text: "return 1"}
	c := frame.New(s, "k1", "k2")
	c.Stamp()
	c.With("a", "")
	c.Number(-7)
	c.Digits(42)
	rest := []string{"2", "k1", "k2", "stamp", "a", "", "-7", "0000000000000042"}
	for asText, want := range map[bool][]string{
		false: append([]string{"EVALSHA", s.SHA}, rest...), true: append([]string{"EVAL", s.Text}, rest...),
	} {
		if got := c.Words("stamp", asText); !reflect.DeepEqual(got, want) {
			t.Errorf("with asText %v the words are %q, want %q", asText, got, want)
		}
	}
	if keys, argv := c.Arguments("stamp"); len(keys) != 2 || !reflect.DeepEqual(argv, rest[3:]) {
		t.Errorf("the keys are %q, and the arguments are %q", keys, argv)
	}
	ping := frame.Command("ping", "PING", "x").Append(nil, "stamp", true)
	if string(ping) != "*2\r\n$4\r\nPING\r\n$1\r\nx\r\n" {
		t.Errorf("a command without a script is encoded as %q", ping)
	}
	second := c.Append(nil, "stamp", false)
	words, left := frame.Next(append(ping, second...))
	if !reflect.DeepEqual(words, []string{"PING", "x"}) || !reflect.DeepEqual(left, second) {
		t.Errorf("the first of two commands is %q, and the rest is %q", words, left)
	}
	if _, left = frame.Next(second); len(left) != 0 {
		t.Errorf("behind the last command there is %q", left)
	}
	long := frame.New(s).With(strings.Repeat("x", 1000)) // longer than the array in a Call
	if got := long.Words("", false); len(got) != 4 || len(got[3]) != 1000 {
		t.Errorf("a call with a long argument has %d words, or a wrong argument", len(got))
	}
}

func TestCallIsOneAllocation(t *testing.T) {
	s := &frame.Script{Name: "s", SHA: strings.Repeat("a", 40)}
	key := "redlock:{orders:1}"
	if n := testing.AllocsPerRun(100, func() { frame.New(s, key, "redlock:admission").Digits(1) }); n > 1 {
		t.Errorf("a call takes %v allocations, want 1", n)
	}
}

package redlock

import (
	"strings"
	"testing"
)

// What stands behind a set is an error, whatever it is: half of a file may have been overwritten.
func TestParseSetTakesOneSetAlone(t *testing.T) {
	const set = `{"epoch": 1, "masters": ["a:1"], "next": ["b:1"]}`
	for _, end := range []string{"", " \n\t"} {
		if s, err := ParseSet([]byte(set + end)); err != nil || s.Epoch != 1 || len(s.Masters) != 1 || len(s.Next) != 1 {
			t.Errorf("with %q behind it: %+v, %v", end, s, err)
		}
	}
	for _, end := range []string{"}", "]", "x", ",", set, "\n}", "null"} {
		_, err := ParseSet([]byte(set + end))
		isInvalid(t, err, "behind the set")
	}
	for text, want := range map[string]string{
		"": "no set of masters", "[]": "no set of masters", `{"epoch": 0, "master": ["a:1"]}`: "master",
		`{"epoch": 0}`: "names no masters", `{"epoch": 1, "masters": ["a:1"]}`: "no next ones",
		strings.Replace(set, "1", "2", 1): "next masters are named", strings.Replace(set, "1", "-1", 1): "from 0",
	} {
		_, err := ParseSet([]byte(text))
		isInvalid(t, err, want)
	}
}

// A quorum of a set is a majority of it; while a fleet changes its masters, one of the next ones, too.
func TestQuorumOfASet(t *testing.T) {
	old, next := []string{"a", "b", "c"}, []string{"c", "d", "e", "f"}
	for _, c := range []struct {
		set  Set
		has  string
		want bool
	}{
		{Set{Masters: old}, "", false}, {Set{Masters: old}, "a", false}, {Set{Masters: old}, "ac", true},
		{Set{Masters: next}, "cd", false}, {Set{Masters: next}, "cde", true},
		{Set{Epoch: 1, Masters: old, Next: next}, "abc", false}, {Set{Epoch: 1, Masters: old, Next: next}, "cdef", false},
		{Set{Epoch: 1, Masters: old, Next: next}, "acde", true},
	} {
		if got := c.set.Quorum(func(m string) bool { return strings.Contains(c.has, m) }); got != c.want {
			t.Errorf("%v of %v is a quorum: %v", c.has, c.set, got)
		}
	}
}

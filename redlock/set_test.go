package redlock

import (
	"strings"
	"testing"
)

// Any data after a configuration are an error: half of a file may have been overwritten.
func TestParseSetTakesOneSetAlone(t *testing.T) {
	const set = `{"epoch": 1, "masters": ["a:1"], "next": ["b:1"]}`
	for _, end := range []string{"", " \n\t"} {
		if s, err := ParseConfiguration([]byte(set + end)); err != nil || s.Epoch != 1 || len(s.Masters) != 1 ||
			len(s.Next) != 1 {
			t.Errorf("followed by %q: %+v, %v", end, s, err)
		}
	}
	for _, end := range []string{"}", "]", "x", ",", set, "\n}", "null"} {
		_, err := ParseConfiguration([]byte(set + end))
		isInvalid(t, err, "text after")
	}
	for text, want := range map[string]string{
		"": "invalid configuration", "[]": "invalid configuration", `{"epoch": 0, "master": ["a:1"]}`: "master",
		`{"epoch": 0}`: "has no masters", `{"epoch": 1, "masters": ["a:1"]}`: "needs next masters",
		strings.Replace(set, "1", "2", 1): "must not have next", strings.Replace(set, "1", "-1", 1): "from 0",
	} {
		_, err := ParseConfiguration([]byte(text))
		isInvalid(t, err, want)
	}
}

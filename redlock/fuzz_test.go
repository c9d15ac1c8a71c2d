package redlock

import (
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Any handle that could be given out is read back as it was.
func FuzzHandleRoundTrip(f *testing.F) {
	f.Add("redlock", "orders:42", "a-b-c:7", int64(7))
	f.Add("p", "\xff\x00{}", "i", int64(scripts.MaxBallot))
	f.Fuzz(func(t *testing.T, prefix, name, id string, token int64) {
		want := exportedLock{prefix: prefix, name: name, id: id, token: token}
		fit := scripts.CheckPrefix(prefix) == nil && scripts.CheckName(name) == nil && id != "" && len(id) <= 512 &&
			token >= 0 && token <= scripts.MaxBallot
		if got, err := parseHandle(want.String()); (err == nil) != fit || fit && got != want {
			t.Fatalf("%+v, %v; want %+v, in order: %v", got, err, want, fit)
		}
	})
}

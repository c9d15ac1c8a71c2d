//go:build !redlock_teeth

package sim

import (
	"testing"

	"github.com/redlock-go/redlock/redlock"
)

// takeOut takes the protection of this name out; "" is none.
func takeOut(t *testing.T, name string) (opts []redlock.Option, restore func()) {
	t.Helper()
	if name != "" {
		t.Fatalf("this build has all protections in; for -without %s, build with -tags redlock_teeth", name)
	}
	return nil, func() {}
}

package must

import (
	"errors"
	"testing"
)

// Do ends the test if an error is not nil.
func Do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Get returns the value of a call, and ends the test if the call has failed: must.Get(l.Lock(ctx, "n"))(t).
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

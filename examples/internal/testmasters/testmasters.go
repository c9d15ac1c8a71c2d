package testmasters

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// Start starts n servers, which vote immediately, and stops them at the end of the test. Start skips the test if no
// server program is installed.
func Start(t testing.TB, n int) (servers []*redisproc.Server, urls []string) {
	t.Helper()
	servers = redistest.Test(t, n, redisproc.Config{})
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := redlocktest.Admit(ctx, urls...); err != nil {
		t.Fatal(err)
	}
	return servers, urls
}

// Listen starts n masters in memory, which listen until the end of the test. Listen needs no server program.
func Listen(t testing.TB, n int) (urls []string) {
	t.Helper()
	masters := redlocktest.New(n)
	t.Cleanup(masters.Close)
	urls, err := masters.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

// Locker returns the Locker of a new client over the masters at urls. All masters must answer at the end of the test.
func Locker(t testing.TB, urls []string) *redlock.Locker {
	t.Helper()
	l, err := redlock.Open(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

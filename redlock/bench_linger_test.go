package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// A pair of Lock and Unlock of a lock that lingers sends nothing.
func BenchmarkLinger(b *testing.B) {
	masters := memory.New(5)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	l, err := redlock.New(p, redlock.WithLinger(time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close(b.Context()) }()
	pair := func() {
		k, err := l.Lock(b.Context(), "n")
		if err != nil {
			b.Fatal(err)
		}
		if err := k.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	pair()
	time.Sleep(time.Second) // it subscribes
	b.ReportAllocs()
	for b.Loop() {
		pair()
	}
}

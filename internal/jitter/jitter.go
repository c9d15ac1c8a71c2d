package jitter

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// A source is a source of random numbers.
type source struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu
}

var given atomic.Pointer[source] // nil means that of the runtime

// Int64N returns a number in [0, n). n must be positive. It is safe for concurrent use.
func Int64N(n int64) int64 {
	s := given.Load()
	if s == nil {
		return rand.Int64N(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Int64N(n)
}

// Float64 returns a number in [0, 1). It is safe for concurrent use.
func Float64() float64 {
	s := given.Load()
	if s == nil {
		return rand.Float64()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Float64()
}

// Use makes r the source for the whole process until restore is called.
func Use(r *rand.Rand) (restore func()) {
	last := given.Swap(&source{r: r})
	return func() { given.Store(last) }
}

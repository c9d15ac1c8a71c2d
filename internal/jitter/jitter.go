package jitter

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A source is a source of random numbers.
type source struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu
}

var given atomic.Pointer[source] // nil means the source of the runtime

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
func Float64() float64 { return float64(Int64N(1<<53)) / (1 << 53) }

// Unique returns a random number that differs from the numbers in a copy of this process. The number comes from the
// kernel, because the random source of the Go runtime is copied with the process. If the hypervisor does not notify the
// kernel that the machine was copied (VM generation ID), both kernels return the same numbers for a while. So Unique
// combines the number with the time of the call in nanoseconds. While a source from [Use] is active, Unique returns 0,
// because simulated processes are not copied. It is safe for concurrent use.
func Unique() uint32 {
	if given.Load() != nil {
		return 0
	}
	var b [4]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:]) ^ uint32(time.Now().UnixNano())
}

// Use makes r the source for the whole process until the caller calls restore.
func Use(r *rand.Rand) (restore func()) {
	last := given.Swap(&source{r: r})
	return func() { given.Store(last) }
}

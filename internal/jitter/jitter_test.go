package jitter

import (
	crand "crypto/rand"
	"math/rand/v2"
	"testing"
	"time"
)

// zeros simulates the random source of machines that were copied and have not noticed that: it returns the same
// bytes on all of them.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestUniqueDiffersOnCopiesOfTheKernel(t *testing.T) {
	given := crand.Reader
	defer func() { crand.Reader = given }()
	crand.Reader = zeros{}
	first := Unique()
	time.Sleep(time.Millisecond) // the times of two machines always differ a little
	if Unique() == first {
		t.Error("two copies have drawn the same number")
	}
}

func TestUseReplacesSourceUntilRestored(t *testing.T) {
	draw := func() (list []float64) {
		restore := Use(rand.New(rand.NewPCG(1, 2)))
		defer restore()
		for range 20 {
			list = append(list, Float64(), float64(Int64N(1000)))
		}
		return list
	}
	first, second := draw(), draw()
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("number %d is %v from one source, and %v from an equal one", i, first[i], second[i])
		}
	}
	if given.Load() != nil {
		t.Error("the source was not restored")
	}
}

func TestNumbersAreInTheirRange(t *testing.T) {
	for range 1000 {
		if n := Int64N(3); n < 0 || n > 2 {
			t.Fatal(n)
		}
		if f := Float64(); f < 0 || f >= 1 {
			t.Fatal(f)
		}
	}
}

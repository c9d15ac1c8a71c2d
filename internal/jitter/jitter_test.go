package jitter

import (
	"math/rand/v2"
	"testing"
)

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
			t.Fatalf("number %d: %v and %v", i, first[i], second[i])
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

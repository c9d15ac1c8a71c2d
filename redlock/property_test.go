package redlock

import (
	"flag"
	"math/rand/v2"
	"testing"
)

// cases is how many random inputs a property is tried with.
const cases = 50_000

var propertySeed = flag.Uint64("property.seed", 0, "repeat the one case of a property test that a failure has named")

// property tries check with random inputs, each from a seed of its own. A failure names the seed, and
// -property.seed repeats that one case.
func property(t *testing.T, check func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	first, n := rand.Uint64(), uint64(cases)
	if *propertySeed != 0 {
		first, n = *propertySeed, 1
	}
	for seed := first; seed != first+n; seed++ {
		check(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("repeat it with -run '^%s$' -property.seed=%d", t.Name(), seed)
		}
	}
}

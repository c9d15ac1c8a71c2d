package property

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
)

// Cases is the number of inputs to try; without -long it is a tenth of that.
const Cases = 50_000

var seedFlag = flag.Uint64("property.seed", 0, "repeat the one case of a property test that a failure has named")

// Check calls f with Cases sources of random numbers, each from its own seed. A failure names the seed, and
// -property.seed repeats that one case.
func Check(t *testing.T, f func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	first, n := rand.Uint64(), uint64(Cases)
	switch {
	case Repeats():
		first, n = *seedFlag, 1
	case !long.Enabled():
		n /= 10
	}
	for seed := first; seed != first+n; seed++ {
		f(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("repeat it with -run '^%s$' -property.seed=%d", t.Name(), seed)
		}
	}
}

// Repeats reports whether a single case is repeated, in which case a test should not count the cases it saw.
func Repeats() bool { return *seedFlag != 0 }

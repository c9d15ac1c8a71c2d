package property

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
)

// Cases is the number of inputs to try. Without -long, a tenth of that number is tried.
const Cases = 50_000

var seedFlag = flag.Uint64("property.seed", 0, "repeat the one case of a property test that a failure has named")

// Check calls f with Cases sources of random numbers, each from its own seed. If f fails, Check logs the seed;
// -property.seed repeats the case with that seed.
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

// Repeats reports whether a single case is repeated. A test then should not check how many cases occurred.
func Repeats() bool { return *seedFlag != 0 }

package property

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
)

// Cases is the number of inputs of a property test with -long. Without -long, a test has a tenth of that number.
const Cases = 50_000

var seedFlag = flag.Uint64("property.seed", 0, "run only the case with the `seed` that a failed test has logged")

// Check calls f once for each case, with random numbers from a different seed. If f fails, Check ends the test and logs
// the seed; -property.seed repeats the case with that seed.
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
			t.Fatalf("to repeat this case, use -run '^%s$' -property.seed=%d", t.Name(), seed)
		}
	}
}

// Repeats reports whether -property.seed selects a single case. If so, a test must not expect that every kind of case
// occurred.
func Repeats() bool { return *seedFlag != 0 }

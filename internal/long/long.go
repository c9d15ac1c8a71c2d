package long

import (
	"flag"
	"testing"
)

var given = flag.Bool("long", false, "also run the long tests, and run all cases of the other tests")

// Enabled reports whether the tests run with -long and without -short. It must be called after the flags have been
// parsed.
func Enabled() bool { return *given && !testing.Short() }

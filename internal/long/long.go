package long

import (
	"flag"
	"testing"
)

var given = flag.Bool("long", false, "run the long tests, too, and all cases of the others")

// Enabled reports whether -long was given. -short overrides it. It must be called after the flags have been parsed.
func Enabled() bool { return *given && !testing.Short() }

//go:build race

package race

// Enabled reports whether the program was built with -race. Tests use it to skip long runs of one goroutine, because
// the race detector makes them ten times slower.
const Enabled = true

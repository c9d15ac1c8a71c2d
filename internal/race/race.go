//go:build race

package race

// Enabled reports whether the program was built with -race. If it was, tests skip long runs of a single goroutine,
// because the race detector makes such runs ten times slower.
const Enabled = true

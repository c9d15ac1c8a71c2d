// Package memory provides masters in memory with fault injection: package redlocktest shows to users what a test of
// their own code needs of it; the tests of this module use the rest. It does not import package redlock, whose own
// tests use it.
//
// A master executes the library's own scripts by their reference in Go (internal/scripts/reference), and of the other
// commands only the few that the library and simple checks need. [Server] is a master without a network; the simulator
// has one of its own for it.
//
// # Goroutines
//
// Each connection has three goroutines on the master's side. The first reads commands as fast as they arrive, like the
// buffer of a kernel. The second executes them after the delay, unless the master hangs. The third writes the replies,
// again after the delay. [Masters.Close] ends and joins them all. All methods are safe for concurrent use.
package memory

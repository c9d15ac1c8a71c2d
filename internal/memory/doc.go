// Package memory provides masters in memory with fault injection. Package redlocktest exports what users need for
// tests of their own code, and the tests of this module use the rest. Package memory must not import package redlock,
// because the tests of package redlock use package memory.
//
// A master executes the library's own scripts by means of their model in Go (internal/scripts/reference). Of the
// other commands it supports only the few that the library and simple checks need. [Server] is a master without a
// network; the simulator connects it to a simulated network.
//
// # Goroutines
//
// Each connection has three goroutines on the master's side. The first reads commands as fast as they arrive, like
// the buffer of a kernel. The second executes them after the delay, unless the master hangs. The third writes the
// replies, again after the delay. [Masters.Close] ends all goroutines and waits for them. All methods are safe for
// concurrent use.
package memory

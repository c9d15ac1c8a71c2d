// Package memory provides in-memory masters with fault injection. Package redlocktest exports the part of it that users
// need for tests of their own code; the other functions are for the tests of this module. Package memory must not
// import package redlock, because the tests of package redlock use package memory.
//
// A master executes the library's scripts with a Go model of each script (internal/scripts/reference). Of the other
// commands, a master supports only the few that the library and simple checks need. [Server] is a master without a
// network; the simulator connects it to a simulated network.
//
// # Goroutines
//
// Each connection has three goroutines on the master's side. The first reads commands as fast as they arrive, like the
// receive buffer of a kernel. The second executes them after the delay, unless the master hangs. The third writes the
// replies, again after the delay. [Masters.Close] ends all goroutines and waits for them. All methods are safe for
// concurrent use.
package memory

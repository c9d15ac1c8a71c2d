// Package redisproc starts real redis-server (or valkey-server) processes, for tests and for the benchmark.
//
// A [Server] is one process in its own temporary directory, on a free port of 127.0.0.1 and on a Unix socket. It
// writes no data to disk unless its [Config] enables persistence. Its life cycle is:
//
//	Start --> up --Pause--> paused --Resume--> up
//	           |                |
//	           +--Kill----------+--> down --Restart--> up (same port; empty without persistence)
//	           +--Stop, from any state--> gone, with its directory
//
// On Linux no server outlives the process that started it, even after a SIGKILL: the kernel kills the server when the
// thread that started it ends. So a goroutine per server occupies that thread until the server has ended. On other
// Unix systems, a process that is killed with SIGKILL leaves its servers behind.
//
// All methods are safe for concurrent use; those that change the state wait for each other.
package redisproc

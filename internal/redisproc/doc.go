// Package redisproc starts real redis-server (or valkey-server) processes, for tests and for the benchmark.
//
// A [Server] is one process in a temporary directory of its own, on a free port of 127.0.0.1 and on a Unix socket. It
// keeps nothing on disk unless its [Config] asks for persistence. Its life:
//
//	Start ──> up ──Pause──> paused ──Resume──> up
//	           │                │
//	           ├──Kill──────────┴──> down ──Restart──> up (same port; empty unless persistence is on)
//	           └──Stop, from any state──> gone, with its directory
//
// No server outlives this process, however this process ends: on Linux the kernel kills the child when the thread that
// started it dies, and that thread is kept, by one goroutine for each process, until the child is gone. On other Unix
// systems a parent that is killed with SIGKILL leaves its servers behind.
//
// All methods may be called from several goroutines at once; those that change the state wait for each other.
package redisproc

// Package redlocktest provides in-memory masters with fault injection, for tests of programs that lock with package
// redlock. It needs no server, Docker or port.
//
//	masters := redlocktest.New(5)
//	defer masters.Close()
//	p, err := masters.Pool()              // a *pool.Pool for redlock.New
//	masters.Master(0).Hang()              // it stops answering
//
// A master executes the library's own scripts with the same decisions as Redis: a test of the library runs the same
// operations on both and compares every reply. Of the other commands it supports only the few that the library and
// simple checks need. Everything else is the real library: the connections, the votes, the timers.
//
// # Time
//
// Masters use time.Now, so inside a testing/synctest bubble they follow the bubble's clock; create and close them
// inside it. Their goroutines block only in ways that a bubble detects, unless Listen is used. A Locker over
// [Masters.Pool] follows the bubble's clock as well. [Master.SetClock] makes a master's clock wrong. The tests of
// examples/payments work this way.
//
// # Admission
//
// A real master that has not been admitted goes through a quarantine first, since it may have lost locks. Masters made
// by New have lost nothing: they are admitted for the default prefix and max TTL of package redlock, and a Locker
// with default options can lock at once. Use [Masters.Admit] for another prefix or max TTL, and [Fresh] to test the
// quarantine. [Master.Restart] and [Master.Flush] cause a quarantine as on a real master.
//
// [Admit] makes real servers vote at once that a test has just started.
//
// # Goroutines
//
// Each connection has three goroutines on the master's side. The first reads commands as fast as they arrive, like the
// buffer of a kernel. The second executes them after the delay, unless the master hangs. The third writes the replies,
// again after the delay. [Masters.Close] ends and joins them all. All methods are safe for concurrent use.
package redlocktest

// Package redlocktest provides in-memory masters with fault injection, for tests of programs that lock with package
// redlock. It needs no server, Docker or port.
//
//	locker, masters := redlocktest.NewLocker(t, 5)
//	masters.Master(0).Hang()               // it stops answering
//	masters.Take("orders:42", time.Minute) // another client holds the lock
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
// by New and NewLocker have lost nothing and are admitted, so a Locker can lock immediately. Use [Prefix] and [MaxTTL]
// with New for a Locker that has them, and [Fresh] to test the quarantine. [Master.Restart] and [Master.Flush] cause a
// quarantine as on a real master; [Master.Admit] ends it.
//
// [Admit] lets real servers vote immediately after a test has started them.
//
// [Masters.Close], or the end of the test of NewLocker, ends and joins all goroutines of the masters. All methods are
// safe for concurrent use.
package redlocktest

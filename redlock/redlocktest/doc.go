// Package redlocktest provides in-memory masters with fault injection, for tests of programs that lock with package
// redlock. It needs no server, Docker or port.
//
//	locker, masters := redlocktest.NewLocker(t, 5)
//	masters.Master(0).Hang()               // it stops answering
//	masters.Take("orders:42", time.Minute) // another client holds the lock
//
// A master executes the library's own scripts with the same decisions as Redis: a test of the library runs the same
// operations on both and compares every reply. Of the other commands, a master supports only those that the library and
// simple checks need. The connections, the votes and the timers are those of the real library.
//
// # Time
//
// Masters use time.Now. Inside a testing/synctest bubble they therefore follow the bubble's clock; create and close
// them inside the bubble. Their goroutines block only in ways that a bubble detects, unless [Masters.Listen] is used. A
// Locker over [Masters.Pool] also follows the bubble's clock. [Master.SetClock] makes a master's clock wrong. The tests
// of examples/payments are an example.
//
// # Admission
//
// A real master that has not been admitted goes through a quarantine first, since it may have lost locks. Masters made
// by New and NewLocker have lost nothing and are admitted, so a Locker can lock immediately. If a Locker has its own
// prefix or max TTL, give the masters the same values with [Prefix] and [MaxTTL]; NewLocker does so itself. Use [Fresh]
// to test the quarantine. [Master.Restart] and [Master.Flush] cause a quarantine as on a real master; [Master.Admit]
// ends it.
//
// [Admit] lets real servers vote immediately.
//
// [Masters.Close], or the end of a test that called NewLocker, ends all goroutines of the masters and waits for them.
// All methods are safe for concurrent use.
package redlocktest

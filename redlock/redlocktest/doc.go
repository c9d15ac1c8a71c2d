// Package redlocktest gives in-memory masters, for tests of programs that lock with package redlock: no server, no
// Docker, no port, and faults to order.
//
//	masters := redlocktest.New(5)
//	defer masters.Close()
//	p, err := masters.Pool()              // a *pool.Pool for redlock.New
//	masters.Master(0).Hang()              // from now on it answers nothing
//
// A master runs the library's own scripts by the same decisions as a Redis does (a test of the library gives both the
// same operations and compares every reply), and of other commands only the few that the library and simple checks
// need. All else of the library is real: the connections, the votes, the timers.
//
// # Time
//
// Masters tell the time by time.Now, so that inside a testing/synctest bubble they follow the bubble's clock; make
// them, and close them, inside it. Their goroutines block in ways that the bubble knows, unless Listen is used.
// A Locker over [Masters.Pool] follows it as well. [Master.SetClock] makes a master's clock wrong. The tests of
// examples/payments are written so.
//
// # Admission
//
// A real master that nobody has admitted sits through a quarantine first, since it may have forgotten locks. Masters
// made by New have forgotten nothing; they are admitted for the prefix and the guard time that package redlock has by
// default, and a Locker with default options can lock at once. Use [Masters.Admit] for another prefix or guard time,
// [Fresh] to see the quarantine. [Master.Restart] and [Master.Flush] bring it about as they do on a real master.
//
// [Admit] lets real servers vote at once that a test has just started.
//
// # Goroutines
//
// Each connection has three goroutines on the master's side. One reads commands as fast as they come, as a kernel's
// buffer would; one executes them, after the delay, unless the master hangs; one writes the replies, after the delay
// again. [Masters.Close] ends and joins them all. All methods may be called from several goroutines at once.
package redlocktest

// Package floor is the least that a lock over a majority of masters can do: what the benchmark measures the library
// against.
//
// It runs the same two scripts with the same arguments (admission record, ballots, fences, queues) over the same number
// of connections, one pipelined connection a master, encoded by the same client package, and waits for a majority. It
// does nothing else: no roll-back, no timer, no extension, no debts, no tracing, no lost locks, no waiting for a name
// that is held, and every error is the end. It is not a lock to be used.
//
// It has two forms, since neither is the faster everywhere:
//
//	Direct   the caller writes to the sockets itself, one after the other, under a mutex a connection: no goroutine has
//	         to be woken to send. It wins with one caller.
//	Queued   a writer goroutine a connection drains a queue and flushes once for all that it found: one system call
//	         for many callers. It wins with many.
//
// In both a reader goroutine a connection hands the replies to their rounds in order, and the third of five grants wakes
// the caller once. What the benchmark calls the floor is the better of the two at each number of goroutines.
package floor

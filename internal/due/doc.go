// Package due runs tasks when they are due, with one goroutine and one heap for any number of tasks.
//
//	Add, Reschedule ──► heap, ordered by due time on the boot clock ──► Run, by the goroutine
//
// Go timers stop while the machine is suspended or frozen. So the goroutine reads the clocks every tenth of a second as
// long as the heap has a task. When the wall clock has gained on the boot clock, every task runs, because every
// validity has become shorter.
package due

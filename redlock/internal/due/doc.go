// Package due runs tasks when they are due: one goroutine and one heap for any number of them.
//
//	Add, Reschedule ──► heap, by when each is due on the boot clock ──► Run, by the goroutine
//
// Timers stop while the machine is suspended or frozen, so while there is any task the clocks are read every tenth of a
// second. When the wall clock has gained on the boot clock, every task runs, because every validity has become shorter.
package due

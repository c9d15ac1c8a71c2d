// Package due looks at things when they are due: one goroutine and one heap for any number of them.
//
//	Add, Fix ──► heap, by when each is due on the boot clock ──► Look, by the goroutine
//
// Timers stand still while the machine is suspended or frozen, so while there is anything to look at the clocks are
// read every tenth of a second. When the wall clock has gained on the boot clock, everything is looked at: what
// remains of each validity is shorter than it was.
package due

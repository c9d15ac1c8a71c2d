// Package mutants lists the protections without which two clients hold a name, tokens go back, or a name stays locked.
// A mutant is the library without one protection: a test or a schedule of the simulator must fail with it. Comments in
// the source define the mutants; they do not affect normal builds. A comment says how its mutant changes the statement,
// case or declaration that begins on the next line:
//
//	//mutant:NAME = EXPR    EXPR replaces the condition, or all values
//	//mutant:NAME 2= EXPR   EXPR replaces the second operand; &&, || and commas separate operands
//	//mutant:NAME -> CODE   CODE replaces the whole statement, case or declaration
//	//mutant:NAME drop      the statement, case or declaration is removed
//
// For example:
//
//	//mutant:fence 1= false
//	//mutant:ballot-bounds 2= false
//	if a.first <= top || a.first <= now-window {
//
// A mutant can have several comments, in several files. The row of a mutant in [List] describes the fault that occurs
// without the protection, and names the suite that kills the mutant: the suite fails with the mutant. A test of this
// package checks that each mutant has comments and a row, and compiles, so a comment that becomes invalid is noticed
// immediately. With -long, this package also runs the mutants that tests kill, and package sim runs the mutants that
// schedules kill. To run both:
//
//	make mutants
//
// Mutants of a script change the Go model of the script (internal/scripts/reference).
package mutants

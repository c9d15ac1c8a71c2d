// Package mutants lists the protections of the library, and removes them one at a time: a test or a schedule of the
// simulator must then fail. A protection is marked in the source by comments, which production ignores. A comment says
// how its mutant changes the statement, case or declaration that begins on the next line:
//
//	//mutant:NAME = EXPR    its condition or its values become EXPR
//	//mutant:NAME 2= EXPR   the second operand of them does; operands are counted through &&, || and commas
//	//mutant:NAME -> CODE   it becomes CODE
//	//mutant:NAME drop      it is removed
//
// For example:
//
//	//mutant:fence 1= false
//	//mutant:ballot-bounds 2= false
//	if a.first <= top || a.first <= now-window {
//
// A mutant can have several comments, in several files. Its row in [List] describes the fault without the protection,
// and names the suite that kills the mutant. A test of this package checks that comments and rows belong together and
// that each mutant compiles, so a change that makes a comment invalid is noticed at once. With -long it runs the
// mutants that tests kill; package sim runs those that schedules kill. To run both:
//
//	make mutants
//
// A protection of a script is marked in its reference in Go.
package mutants

// Package mutants lists the protections of the library, and removes them one at a time: a test or a schedule of the
// simulator must then fail. Comments mark a protection in the source; they do not affect normal builds. A comment
// defines how its mutant changes the statement, case or declaration that begins on the next line:
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
// A mutant can have several comments, in several files. Its row in [List] describes the fault that occurs without
// the protection, and names the suite that kills the mutant. A test of this package checks that each mutant has
// comments and a row, and that it compiles, so a change that makes a comment invalid is noticed immediately. With
// -long, the test suite also runs the mutants that tests kill; package sim runs those that schedules kill. To run
// both:
//
//	make mutants
//
// A protection of a script is marked in the Go reference of the script.
package mutants

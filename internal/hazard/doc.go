// Package hazard is for tests. Each claim of docs/hazards.md that the library does not keep yet stands in one list,
// with a sentence on what is wrong. Its test runs all the same, and must fail for as long as it is listed:
//
//	in the list    the body fails     the test passes, and logs what the body said
//	in the list    the body passes    the test fails: take the claim off the list
//	not in it      the body fails     the test fails
//	not in it      the body passes    the test passes
//
// So a fault that is mended is noticed, and cannot come back unnoticed.
package hazard

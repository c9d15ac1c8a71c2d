// Command tests runs "go test", and says at the end what was left out:
//
//	go run ./internal/tests -race work
//
// "go test" does not show what a package prints that passes, so nobody would learn that half of the tests need a server
// that is not installed. This program takes the arguments of "go test" and prints the same lines: one for each package,
// before it what tests that failed have said. Then comes a line for each reason for which tests were skipped, and last
// one for all packages. Its status is the one of "go test".
//
// A test that is skipped says what it needs: t.Skip("needs a C compiler: apt-get install gcc"). Tests that lack one and
// the same thing say the same, so that it is told once.
package main

// Package long adds the flag -long to the tests that import it. Without it, long suites are skipped, and others run
// with fewer cases.
package long

// Package long adds the flag -long to the tests that import it. Without the flag, long suites are skipped, and other
// tests run fewer cases.
package long

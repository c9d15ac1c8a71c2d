// Package redistest starts the servers that a test needs, and stops them when the test ends.
package redistest

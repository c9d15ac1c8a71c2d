// Package redistest starts the servers that one test needs and stops them with it.
package redistest

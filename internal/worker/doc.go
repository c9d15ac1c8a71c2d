// Package worker runs parts of tests in separate processes. The test binary starts itself as a worker, which performs
// one role until its standard input ends. The lines of the worker's standard output are its messages to the test.
package worker

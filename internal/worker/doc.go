// Package worker runs parts of tests in separate processes. The test binary starts itself as a worker, which performs
// one role until its standard input is closed. The worker sends messages to the test as lines of its standard output.
package worker

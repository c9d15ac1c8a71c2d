// Package worker runs parts of tests in processes of their own: the test binary starts itself as a worker, which does
// one role until its standard input ends. Lines of its standard output are its messages to the test.
package worker

// Package frame has the calls that go to masters: a script with its arguments, or another command, encoded once for any
// number of masters. Package scripts says which scripts and arguments there are.
package frame

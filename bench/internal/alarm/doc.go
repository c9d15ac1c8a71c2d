// Package alarm sleeps with a precision of some tens of microseconds. Go's own timers are less precise, because they
// use a system call with a resolution of milliseconds.
package alarm

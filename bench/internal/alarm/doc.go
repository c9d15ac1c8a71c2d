// Package alarm provides a sleep with a precision of tens of microseconds on Linux. Go's own timers are less precise,
// because they use a system call with a resolution of milliseconds.
package alarm

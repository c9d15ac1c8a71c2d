// Package alarm sleeps to within some tens of microseconds. Go's own timers are kept by a call of the kernel that
// counts in milliseconds.
package alarm

// Package redlockinfo contains the types in which a redlock.Locker reports to people and monitoring: the events of a
// [Trace], the state of each [Master], each [Finding] of a check, and the [Inspection] of a name. A program that only
// locks does not need this package.
package redlockinfo

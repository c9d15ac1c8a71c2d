// Package teeth names the protections that the simulator takes away, one at a time, to show that its checks can fail.
//
// In a normal build each name is the constant false, so that nothing of it is in any program. With the build tag
// redlock_teeth, which only tests use, they are variables. They are set before the first Locker or master is made, and
// not changed while one lives.
package teeth

// Package private gives the command, the benchmark, the simulator and the tests access to what package redlock does
// not export: options that no user needs, and the steps of a change of the masters. Package redlock provides the
// functions when it is imported.
package private

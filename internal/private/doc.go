// Package private gives the command, the benchmark, the simulator and the tests what package redlock does not export:
// options that no user needs, and the steps of a change of the masters. Package redlock provides it when it is
// imported.
package private

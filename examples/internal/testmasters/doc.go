// Package testmasters provides the masters and the Lockers of the tests of the examples. Other tests do not need it:
// docs/testing.md shows the calls that they use.
package testmasters

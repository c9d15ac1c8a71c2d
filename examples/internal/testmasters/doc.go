// Package testmasters provides masters and Lockers for the tests of the examples. Tests of other programs do not need
// this package: docs/testing.md shows the calls for them.
package testmasters

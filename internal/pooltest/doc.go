// Package pooltest has what the tests of the packages that make pools from the options of other clients share.
package pooltest

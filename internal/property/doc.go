// Package property tries a claim with many random inputs, in tests.
package property

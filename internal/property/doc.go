// Package property checks a claim with many random inputs, in tests.
package property

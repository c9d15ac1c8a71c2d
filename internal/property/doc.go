// Package property runs a test with many random inputs.
package property

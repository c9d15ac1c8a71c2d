// Package skew judges how far the clock of a master differs from the median of the masters' clocks.
package skew

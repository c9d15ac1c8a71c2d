// Package skew judges how far the clock of a master is off the median of the masters.
package skew

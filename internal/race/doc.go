// Package race reports whether the race detector is enabled.
package race

// Package jitter draws the random part of pauses and of the ids of leases. A simulator can replace the source, so
// that its seed determines these numbers, too. Safety depends on them only if a process is copied while it runs.
package jitter

// Package jitter draws the random part of pauses and of the ids of leases. A simulator can replace the source, so that
// a seed decides them too. Safety depends on these numbers only for a process that is copied while it runs.
package jitter

// Package jitter generates random numbers for pauses, ids of leases and stamps of admission records. A simulator can
// replace the source of these numbers by a source with a seed.
package jitter

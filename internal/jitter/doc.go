// Package jitter draws the random part of pauses. A simulator puts a source of its own in its place, so that a seed
// decides them too; nothing that matters to safety is drawn here.
package jitter

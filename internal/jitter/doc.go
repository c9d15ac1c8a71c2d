// Package jitter draws the random part of pauses. A simulator can replace the source, so that a seed decides them too.
// Nothing that affects safety is drawn here.
package jitter

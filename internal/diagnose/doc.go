// Package diagnose says what is wrong with the masters of a deployment, and what to do about it. It asks each master on
// a connection of its own, and judges the answers by rules that do no I/O.
package diagnose

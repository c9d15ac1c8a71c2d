// Package several takes several things as one, so that nobody waits in a circle: whoever waits for one holds only
// things before it, and all go by one order. It does no I/O and knows no locks.
package several

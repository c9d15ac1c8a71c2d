// Package multilock acquires several things as one, without deadlocks: a client that waits for a thing holds only
// things before it, and all clients use one order. The package does no I/O and knows no locks.
package multilock

// Package fault provides the errors of connections: sentinel errors, errors that match several of them, and error texts
// from which credentials have been removed.
package fault

// Package monitor finds out which masters may vote, and admits masters. It is the loop around package admission, which
// decides: the connections, the clock and the goroutine are here.
//
//	Watch ───────► event ─┐                         ┌─► View, which rounds use
//	answers to steps ─────┼─► facts ──► admission ──┤
//	doubts of rounds ─────┘   (one goroutine)       └─► the next steps, sent through the pool
package monitor

// Package voters finds out which masters may vote, and has masters admitted. It is the loop around package admission,
// which decides: here are the connections, the clock and the goroutine.
//
//	pool.Watch ──► event ─┐                         ┌─► View, by an atomic pointer: what rounds go by
//	answers to steps ─────┼─► facts ──► admission ──┤
//	doubts of rounds ─────┘   (one goroutine)       └─► the next steps, sent through the pool
package voters

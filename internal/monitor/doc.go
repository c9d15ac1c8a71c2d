// Package monitor tracks which masters may vote, and admits masters. Package admission makes the decisions, and package
// monitor adds the goroutine, the connections and the clock.
//
//	Watch ───────► event ─┐                         ┌─► View, which rounds use
//	answers to steps ─────┼─► facts ──► admission ──┤
//	doubts of rounds ─────┘   (one goroutine)       └─► the next steps, sent through the pool
package monitor

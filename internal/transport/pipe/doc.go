// Package pipe sends calls over one connection and hands each reply to its Receiver.
//
// A request is in exactly one of three lists, and passes through them in this order:
//
//	queue     sent, not taken by the writer          guarded by Pipe.mu
//	inflight  taken: a byte may have been written    guarded by Pipe.mu
//	taken     fetched by the reader, reply awaited   reader only
//
// The lists end with the Pipe, so a request is never written on another connection, and each gets exactly one reply.
//
// The writer takes the whole queue at once, so the number of system calls per call falls as the number of callers
// grows. A variant in which callers write to an idle connection themselves was slower: with five masters on two
// processors a round took 15 to 25 % longer.
package pipe

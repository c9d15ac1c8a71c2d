// Package floor is a minimal lock over a majority of masters, with which the benchmark compares the library. The
// lock is not safe; do not use it elsewhere.
//
// A lock is a hash with one field. The acquire script tests whether the key exists; if not, it sets the field and
// the TTL. The release script deletes the key if the field is the caller's, and publishes that the name is free. The
// scripts are sent to all masters over one pipelined connection each. A caller continues when a majority has
// replied.
//
// The floor omits everything that makes such a lock safe or convenient:
//
//   - fences and tokens: a resource cannot distinguish a paused holder from its successor
//   - admission: a master that lost its data votes immediately
//   - queues: clients cannot wait, and a published message only says that a name is free
//   - rollback: the keys of a failed attempt remain until their TTL expires
//   - timeouts, reconnecting, extension, re-entry, tracing
//
// The library takes longer than the floor because of these features. The floor treats a master that is down as
// refusing, and continues with the other masters. It does not wait for a master that hangs.
//
// [DialLibrary] sends the library's scripts over the same connections, but does not apply the library's rules in the
// client. The time that the library needs in addition is the cost of the library's client.
//
// Each connection has a writer and a reader. The writer sends all queued requests with one flush. The reader passes
// the replies to their rounds in order. The reply that decides a round wakes the caller, once.
package floor

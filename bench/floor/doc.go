// Package floor is a minimal lock over a majority of masters, with which the benchmark compares the library. It is not
// safe; do not use it elsewhere.
//
// A lock is a hash with one field. Each script is sent to all masters, over one pipelined connection each, and a call
// returns when a majority has replied. The floor omits what makes such a lock safe or convenient:
//
//   - fences and tokens: a resource cannot distinguish a paused holder from its successor
//   - admission: a master that lost its data votes immediately
//   - queues: clients cannot wait
//   - rollback: the keys of a failed attempt remain until their TTL expires
//   - timeouts, reconnecting, extension, re-entry, tracing
//
// What the library takes longer is the cost of these features. The floor treats a master that is down as refusing, and
// does not wait for a master that hangs.
package floor

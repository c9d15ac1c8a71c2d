// Package floor is a minimal lock over a majority of masters, which the benchmark compares with the library. It is not
// a lock to be used.
//
// A lock is a hash with one field. The acquire tests whether the key exists, and sets the field and the TTL. The
// release deletes the key if the field is the caller's, and publishes that it is free. Both are scripts, sent to all
// masters over one pipelined connection each. A caller continues when a majority has replied.
//
// It omits everything that makes such a lock safe or convenient:
//
//   - fences and tokens: a paused holder cannot be distinguished from its successor
//   - admission: a master that lost its data votes at once
//   - queues: clients cannot wait, and a message only says that a name is free
//   - rollback: the keys of a failed attempt remain until their TTL expires
//   - timeouts, reconnecting, extension, re-entry, tracing
//
// The additional time of the library is the cost of these features. A master that is down counts as refusing, so the
// floor continues with the others. It does not wait for a master that hangs.
//
// The same connections can also send the library's own scripts ([DialLibrary]), without any of its rules on the client.
// The difference from the library is then the cost of its client.
//
// Each connection has a writer, which sends everything queued since its last pass with one flush, and a reader, which
// hands the replies to their rounds in order. The deciding reply wakes the caller, once.
package floor

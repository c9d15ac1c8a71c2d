// Package floor is a plain lock over a majority of masters: what the benchmark measures the library against. It is not
// a lock to be used.
//
// A lock is a hash with one field. The acquire asks whether the key exists, sets the field and the time to live; the
// release deletes the key where the field is the caller's, and publishes that it is free. Both are scripts, sent to
// all masters over one pipelined connection each, and a caller goes on with the word of a majority.
//
// It leaves out everything that makes such a lock safe, or nice to use:
//
//   - fences and tokens: a holder that was paused is not told from the one after it
//   - admission: a master that lost its data votes at once
//   - queues: nobody can wait, and a message says only that a name is free
//   - undoing: what a lost attempt has set stays until its time to live is over
//   - time-outs, reconnecting, extension, re-entry, tracing
//
// What the library takes beyond this is what those cost. A master that is gone counts as one that refuses, so the
// floor works on with the others, and a master that hangs is not waited for.
//
// Each connection has a writer, which sends all that was queued since it last looked with one flush, and a reader,
// which hands the replies to their rounds in order. The deciding reply wakes the caller, once.
package floor

// Command bench measures what a lock over a majority of masters costs. It answers three questions, one scenario each:
//
//   - cost: how long does one caller take to lock and unlock, beside a minimal lock, redsync and rueidislock?
//   - load: how many pairs of lock and unlock do many callers complete, and how long do processes wait for one name?
//   - faults: what does a pair cost while one or two masters are hung, dead or slow?
//
// README.md shows how to call the command, and describes the method; -h lists the flags. Without -masters the command
// starts five servers, so redis-server or valkey-server must be in the PATH. On given masters it uses keys under a
// random prefix, and removes them.
package main

// Package history records and checks the results of lock calls in several processes, for the integration tests, package
// storetest, the tests of package redlock, and the benchmark. [Check] accepts a history if no two holds of a name were
// valid at the same time, according to their holders, and the tokens of each name increased. The integration tests also
// check that the history is linearizable.
package history

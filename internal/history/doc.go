// Package history records and checks the results of lock calls in several processes, for the integration tests, the
// tests of stores and of package redlock, and the benchmark. A history proves mutual exclusion if no two holds of a
// name were valid at the same time, according to their holders, and tokens increased ([Check]). The integration tests
// also search for an order of all calls that explains their results.
package history

// Package history records what processes see of locks, and checks it: the histories of the integration tests, of the
// tests of stores and of package redlock, and of the benchmark. A history proves mutual exclusion if no two holds of a
// name were valid at the same time, according to their holders, and tokens increased ([Check]). The integration tests
// also search for an order of all calls that explains their results.
package history

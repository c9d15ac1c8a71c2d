// Package history records and checks the results of lock calls in several processes, for the integration tests, package
// storetest, the client in another language, and the benchmark. [Check] accepts a history if no two holds of a name
// were valid at the same time, according to their holders, the tokens of each name increased, and no hold was used
// after its end.
package history

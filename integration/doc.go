// Package integration tests the lock over five real masters. The masters are containers if a Docker engine runs and
// has an image or can pull one; otherwise they are processes of an installed redis-server or valkey-server. The
// package contains only tests.
//
//	go test ./integration -long                                  everything
//	go test ./integration                                        the short set
//	go test ./integration -run 'TestScenarios/TLS' -v            one scenario, with its effect on users
//	go test ./integration -run TestNightmare -v -timeout 0 -long -nightmare 10m -nightmare-seed 7
//	integration/report.sh                                        regenerates the table of integration/faults.md
//	integration/matrix.sh                                        every available version of Redis and Valkey
//
// # Scenarios
//
// Each scenario (scenarios_*_test.go) applies a fault while a workload runs (workload_test.go). The workload
// consists of three processes. Each process has a lock that it holds throughout, a name that no other client uses,
// and goroutines that compete for shared names, re-enter, extend, wait and hold beyond the TTL. Every call is
// recorded with its start and end times, its outcome and its token (package history). Afterwards
//
//   - no two holds of a name may have been valid at the same time, according to their holders, tokens must have
//     increased, and no hold may have been re-entered or extended after its end (history.Check);
//   - each process must end by itself, and work must have continued after the fault;
//   - no master may have a lease.
//
// If a majority of the masters was healthy throughout, no held lock may have been lost. A lost lock is only logged if
// the machine was so busy that processes did not run for a quarter of the TTL.
//
// The nightmare combines all faults at random. If a scenario fails, it keeps its history and its log of faults in a
// directory that it prints. The times in the history and in the log are from the same clock.
//
// # Environment
//
//	REDLOCK_TEST_MASTERS     "docker" or "process" requires one kind; a test then fails if it is not available. By
//	                         default the first available kind is used, and a test is skipped if there is none
//	REDLOCK_TEST_IMAGE       the image, with its tag. Default: the first that is present of redis:8, redlock-test/redis:8
//	                         (made by image/debian.sh) and redlock-test/redis:local (made by image/build.sh of the
//	                         installed server), or else redis:8, which must be pulled within a minute
//	REDLOCK_TEST_TREES       directory in which image/debian.sh keeps its downloads. Default: ~/.cache/redlock-test
//	REDLOCK_TEST_NIGHTMARE   duration of the nightmare, like -nightmare. Default: 30s
//	REDLOCK_TEST_REPORT      a file to which each scenario appends its effect on users, as a numbered row of a table
//	REDLOCK_TEST_ARTIFACTS   directory for the history of a scenario that fails. Default: the temporary directory
//	REDLOCK_REDIS_SERVER     the server's program, for processes
//
// # Cleanup
//
// Containers and their network have a label that identifies the run that created them. They are removed at the end
// of each test. If the tests are interrupted or killed, a second process (reaper_test.go) removes them. If that
// fails, a later run on the same machine removes them. Server processes end with the tests; on Linux the kernel
// ensures that.
//
// Four scenarios, or three and the nightmare, run in parallel, because they mostly wait. -parallel 1 gives the most
// stable results.
package integration

// Package integration shows over five real masters that the lock holds: containers where a Docker engine runs and has
// an image or can pull one, else processes of an installed redis-server or valkey-server. It has no code of its own;
// all is in the tests.
//
//	go test ./integration/...                                    everything
//	go test -short ./integration/...                             the short set
//	go test ./integration -run 'TestScenarios/TLS' -v            one scenario, and what its users saw
//	go test ./integration -run Sentinel -v                       masters behind Sentinel, in containers
//	go test ./integration -run TestNightmare -v -args -nightmare 10m -nightmare-seed 7
//	integration/report.sh                                        writes the table of docs/faults.md anew, from a run
//	integration/matrix.sh                                        every version of Redis and Valkey that can be had
//
// # Scenarios
//
// Each scenario (scenarios_*_test.go) is a fault under a workload (workload_test.go): three processes, each with a lock
// that it holds all along, one name that nobody else wants, and two goroutines that fight for shared names, re-enter,
// extend, wait and hold beyond the TTL. Every call is written down with the times of its begin and end, its outcome and
// its token (history_test.go). Afterwards
//
//   - no two holds of a name may have been valid at one time, by what their holders were told, and tokens must have
//     grown (checkIntervals);
//   - some order of the calls must explain all that came back, in a model of a lock with tokens (lockModel, checked by
//     porcupine);
//   - each process must end by itself, and work must have gone on after the fault;
//   - no master may have the key of a lock.
//
// Where a majority of the masters was well all the time, no lock that was held may have been lost. A machine that is
// too busy to run the processes within a quarter of the TTL is let off that, and the log says so.
//
// The nightmare is all of it at random, one fault upon the other. A scenario that fails leaves its history and the log
// of its faults, with times of the same clock, in a directory that it names.
//
// Masters behind Sentinel (sentinel_*_test.go) are containers with addresses of their own, on a network of their own.
// Three programs of the test's own process lock on them while a replica is promoted.
//
// # Environment
//
//	REDLOCK_TEST_MASTERS     "docker" or "process" insists on one; a test then fails where it cannot be had. Without it
//	                         the first that can be had is taken, and a test is skipped where neither can
//	REDLOCK_TEST_IMAGE       the image, with its tag. Default: the first that is present of redis:8, redlock-test/redis:8
//	                         (made by image/debian.sh) and redlock-test/redis:local (made by image/build.sh of the
//	                         installed server), else redis:8 is pulled, which has a minute for it
//	REDLOCK_TEST_TREES       where image/debian.sh keeps what it has fetched. Default: ~/.cache/redlock-test
//	REDLOCK_TEST_NIGHTMARE   how long the nightmare lasts, as -nightmare. Default: 30s
//	REDLOCK_TEST_REPORT      a file to which each scenario appends what its users saw, as a numbered row of a table
//	REDLOCK_TEST_ARTIFACTS   where a scenario that fails leaves its history. Default: the temporary directory
//	REDLOCK_REDIS_SERVER     the server's program, for processes
//
// # Nothing is left behind
//
// Containers, and the network that they are in, carry a label with the process that made them. They are removed at the
// end of each test, by a second process when the tests are interrupted or killed (reaper_test.go), and by the next run
// on the same machine where even that was. Servers that are processes end with the tests, by the kernel's doing on
// Linux.
//
// Four scenarios, or three and the nightmare, run at a time, since most of each is waiting; -parallel 1 gives the
// calmest figures.
package integration

// Package integration tests the library against five real masters: containers where a Docker engine runs and has an
// image or can pull one, else processes of an installed redis-server or valkey-server. It has no code of its own; the
// harness is in the tests.
//
// Environment:
//
//	REDLOCK_TEST_MASTERS   "docker" or "process" insists on one; a test then fails where it cannot be had. Without it
//	                       the first that can be had is taken, and a test is skipped where neither can
//	REDLOCK_TEST_IMAGE     the image, with its tag. Default: redis:8 where it is present, else redlock-test/redis:local
//	                       (see image/build.sh) where that is, else redis:8 is pulled, which has a minute for it
//	REDLOCK_REDIS_SERVER   the server's program, for processes
//
// Containers, and the network that they are in, carry a label with the process that made them. They are removed at the
// end of each test; what a killed test run has left is removed by the next one on the same machine.
package integration

// Command redlock inspects and administers the masters of a deployment of locks, and runs commands under a lock.
//
//	redlock run NAME... -- COMMAND [ARG...]
//	                          runs a command while the lock is held
//	redlock lock NAME...      takes a lock, holds it in the background, and prints a handle
//	redlock unlock HANDLE     releases such a lock
//	redlock check [URL...]    reports the problems of each master, their risks, and the fixes
//	redlock status [URL...]   shows the state of each master
//	redlock admit [URL...]    makes all masters vote immediately, if no lock is held on them
//	redlock quarantine --master ADDR [URL...]
//	                          puts one master into quarantine, to replace its admission record
//	redlock guard [--set 60s] [URL...]
//	                          shows the max TTL of each master, or raises it in the whole deployment
//	redlock set [--raise] [--finish] FILE
//	                          shows the progress of a change of the masters, and performs the next step
//	redlock who [--watch] NAME...
//	                          shows the holder of a name, on how many masters, and the waiters
//	redlock ls [PREFIX]       lists the names that are held
//	redlock web [URL...]      serves a page that shows the masters, the held names, and recent losses
//	redlock release --force NAME
//	                          takes a lock from its holder
//	redlock version           shows the version
//	redlock completion SHELL  prints a completion script for bash, zsh, fish or PowerShell
//
// "redlock COMMAND --help" prints details and an example. All commands accept --prefix and --json. Flags may be written
// with one dash or two.
//
// Every command needs the URLs of all masters of the deployment. They come from the arguments, --masters, the file of
// --config or the environment variable REDLOCK_MASTERS; the first of these that is present is used. Every user of the
// machine can read a password in an argument in the list of processes, but not one in the file or in the environment.
//
// If names are sharded, a slash separates the masters of two shards, and the file contains "shards". The masters of
// each shard are changed separately: set takes a file of one shard, which "shard" identifies.
//
// A command writes to the masters only the requested change. So check, status, who, ls, web, guard without --set, and
// set without --raise and --finish write nothing, and only quarantine and run start a quarantine.
//
// # Exit status
//
// All commands except run, lock and unlock:
//
//	0    success; no problem found
//	1    check has found something that endangers locks; or the operation failed, perhaps only on some masters
//	2    fewer than a quorum of the masters, or of those of one shard, vote: no lock can be acquired there
//	3    usage error; nothing was sent
//
// run returns the status of its command, 128 plus the number of the signal that has ended it, or one of the following.
// lock and unlock return 0 or one of the following.
//
//	64   usage error; nothing was sent
//	69   no quorum of the masters could be reached
//	75   another client holds the lock; --conflict-exit-code sets another status
//	76   the lock was lost, could not be kept, or reached its --max-hold, before the command or the unlock
//	126  the command cannot be run
//	127  the command was not found
//
// # The processes of run
//
//	redlock run ---- keeps the lock; starts both others; passes signals on; stops with the command (Ctrl-Z)
//	   |     |
//	   |   pipe: end of the lock's validity
//	   |     |
//	   |   supervisor     leads the group; drops signals; kills the group when the validity or the pipe ends
//	   |
//	   command            in the group of the supervisor, with its children
//
// So the whole group is killed with KILL in each of these cases:
//
//	the lock ends or is lost              by run, and at the end of the validity by the supervisor too
//	run is stopped (kill -STOP, Ctrl-Z)   by the supervisor, when the validity ends
//	run is killed (kill -9), or crashes   by the supervisor, immediately
//	run and supervisor are killed         on Linux the kernel kills the command, not its children; elsewhere nothing
//	the machine is suspended or frozen    by both, at most a twentieth of a second after it resumes
//
// A process that has left the group (setsid, a daemon, a container that the command asked a server to start) is not
// killed. Windows has no such groups, so a lost lock kills only the command there, and if run is killed, the command
// continues.
package main

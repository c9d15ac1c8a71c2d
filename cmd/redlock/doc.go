// Command redlock inspects and administers the masters of a deployment of locks, and runs commands under a lock.
//
//	redlock run NAME... -- COMMAND [ARG...]
//	                          runs a command while the lock of NAME is held
//	redlock lock NAME...      acquires a lock, holds it in the background, and prints a handle
//	redlock unlock HANDLE     releases a lock that "redlock lock" holds
//	redlock check [URL...]    reports the problems of each master, their risks, and the fixes
//	redlock status [URL...]   shows the state of each master
//	redlock admit [URL...]    makes all masters vote immediately, if no lock is held on them
//	redlock quarantine --master ADDR [URL...]
//	                          puts one master into quarantine, to replace its admission record
//	redlock max-ttl [--set 60s] [URL...]
//	                          shows the max TTL of each master, or raises it in the whole deployment
//	redlock set [--raise | --finish | --abort] FILE
//	                          shows the progress of a change of the masters, and performs the next step
//	redlock who [--watch] NAME...
//	                          shows the holder of a name, the number of masters that have the lock, and the waiters
//	redlock ls [PREFIX]       lists the names that are held
//	redlock web [URL...]      serves a page that shows the masters, the held names, and recent losses
//	redlock release --ask|--force NAME
//	                          asks the holder to release a lock, or takes the lock away
//	redlock version           shows the version
//	redlock completion SHELL  prints a completion script for bash, zsh, fish or PowerShell
//
// "redlock COMMAND --help" prints details and an example. All commands accept --prefix and --json. Flags may be written
// with one dash or two.
//
// Every command needs the URLs of all masters of the deployment. They come from the arguments, --masters, the file of
// --config or the environment variable REDLOCK_MASTERS; the first of these that is present is used. A password in an
// argument is visible to every user of the machine in the process list; a password in the file or in the environment is
// not.
//
// If names are sharded, a slash in the list separates the masters of two shards, and the file has "shards" instead of
// "masters". The masters of each shard are changed separately: the file of "redlock set" describes one shard, which
// "shard" identifies.
//
// A command writes only the requested change to the masters. The commands who, ls, web, max-ttl without --set, and set
// without --raise, --finish and --abort write nothing; check and status may acquire and release a probe lock, and write
// nothing else. Only quarantine, admit, run and lock start a quarantine.
//
// "redlock --help" and "redlock run --help" list the exit statuses.
//
// # The processes of run
//
//	redlock run ---- extends the lock; starts the supervisor; passes signals on; stops with the command (Ctrl-Z)
//	   |     |
//	   |   pipe: orders, and the end of the lock's validity
//	   |     |
//	   |   supervisor     starts the command; leads the group; drops signals; kills the group when validity or pipe end
//	   |
//	   command            in the group of the supervisor, with its children
//
// Processes are killed (KILL) in these cases:
//
//	the lock ends or is lost              the group by run, and at the end of the validity by the supervisor too
//	run is stopped (kill -STOP, Ctrl-Z)   the group by the supervisor, when the validity ends
//	run is killed (kill -9), or crashes   the group by the supervisor, immediately
//	run and supervisor are killed         on Linux the command, but not its children, by the kernel; elsewhere nothing
//	the machine was suspended or frozen   the group by both, if the validity has ended, within 50 ms of the resumption
//
// On Linux, descendants of the command that have left the group (setsid, daemons) are killed too, and run ends when
// none is left: run and the supervisor inherit the children of descendants that end, so without children they have no
// descendants. run waits ten seconds for processes that it cannot kill, and then names them. On other systems,
// descendants that have left the group continue. A process that a server starts for the command, such as a container,
// is not killed. Windows has no process groups: if the lock is lost, only the command is killed, and if run is killed,
// the command continues.
package main

// Command redlock looks at the masters of a fleet of locks, changes what an operator may change, and runs commands
// under a lock.
//
//	redlock run NAME -- COMMAND [ARG...]
//	                          runs a command while the lock is held
//	redlock check [URL...]    tells what is not as it should be on each master, what that endangers, and what to do
//	redlock status [URL...]   tells the state of each master
//	redlock admit [URL...]    lets all of them vote at once; for those who know that no lock is held on them
//	redlock quarantine --master ADDR [URL...]
//	                          puts one master into quarantine, to replace its admission record
//	redlock guard [--set 60s] [URL...]
//	                          tells the guard time of each master, or raises it in the whole fleet
//	redlock set [--raise] [--finish] FILE
//	                          tells how far a change of the masters is, what is next, and does it
//	redlock who [--watch] NAME...
//	                          tells who holds a name, on how many masters, and who waits for it
//	redlock ls [PREFIX]       lists the names that are held
//	redlock release --force NAME
//	                          takes a lock from its holder
//	redlock version           tells the version
//	redlock completion SHELL  writes a script by which bash, zsh, fish or PowerShell complete commands and flags
//
// "redlock COMMAND --help" says more, with an example. All commands know --prefix and --json. Flags may be written with
// one dash or two.
//
// The masters are all masters of the fleet. They are named by URLs as arguments, by --masters, by the file of --config
// or by the environment variable REDLOCK_MASTERS; the first that is there counts. In the list of processes anybody can
// read a password in an argument, and not one in the file or in the environment.
//
// Where names are spread over groups of masters, a slash stands between those of two groups, and the file has "groups".
// The masters are changed group by group: set takes a file of one, which says which by "group".
//
// A command writes to the masters what it is asked to write and nothing else. So check, status, who, ls, guard
// without --set, and set without --raise and --finish write nothing, and only quarantine and run start a quarantine.
//
// # Exit status
//
// Of all commands but run:
//
//	0    all is well, or done
//	1    check has found something that endangers locks; or what was asked for was not done, or not on all masters
//	2    fewer than a quorum of the masters, or of those of one group, vote: no lock can be taken there
//	3    the call is wrong; nothing was sent
//
// Of run, that of its command, 128 and the number of the signal that has ended it, or:
//
//	64   the call is wrong; nothing was sent
//	69   no quorum of the masters could be had
//	75   another holds the lock
//	76   the lock was lost, or could not be kept, before the command had ended
//	126  the command cannot be run
//	127  the command was not found
//
// # The processes of run
//
//	redlock run ---- keeps the lock; starts both others; passes signals on; stops with the command (Ctrl-Z)
//	   |     |
//	   |   pipe: until when the lock is valid
//	   |     |
//	   |   supervisor     leads the group; ignores signals; kills the group when the time is over or the pipe ends
//	   |
//	   command            in the group of the supervisor, with its children
//
// So the group is killed, KILL to all of it, in each of these cases:
//
//	the lock ends or is lost              by run, and at the end of the validity by the supervisor too
//	run is stopped (kill -STOP, Ctrl-Z)   by the supervisor, when the validity ends
//	run is killed (kill -9), or crashes   by the supervisor, at once
//	run and supervisor are killed         on Linux the kernel kills the command, not its children; elsewhere nobody does
//	the machine is suspended or frozen    by both, at most a twentieth of a second after it goes on
//
// A process that has left the group (setsid, a daemon, a container that the command has a server start) is not
// reached. Windows has no such groups: there a lost lock kills the command alone, and nobody kills it if run is killed.
package main

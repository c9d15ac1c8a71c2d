// Command redlock looks at the masters of a fleet of locks, and changes what an operator may change.
//
//	redlock check [URL...]    tells what is not as it should be on each master, what that endangers, and what to do
//	redlock status [URL...]   tells the state of each master
//	redlock admit [URL...]    lets all of them vote at once; for those who know that no lock is held on them
//	redlock quarantine --master ADDR [URL...]
//	                          puts one master into quarantine, to replace its admission record
//	redlock guard [--set 60s] [URL...]
//	                          tells the guard time of each master, or raises it in the whole fleet
//	redlock set [--raise] [--finish] FILE
//	                          tells how far a change of the masters is, what is next, and does it
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
// A command writes to the masters what it is asked to write and nothing else. So check, status, guard without --set,
// and set without --raise and --finish write nothing, and only quarantine starts a quarantine.
//
// # Exit status
//
//	0    all is well, or done
//	1    check has found something that endangers locks; or what was asked for was not done, or not on all masters
//	2    fewer than a quorum of the masters vote: no lock can be taken
//	3    the call is wrong; nothing was sent
package main

// The exit statuses of run itself; see doc.go.
const exitRunUsage = 64

// Package configfile reads the file that describes a deployment: its masters, the login and the options that all
// clients share. It makes pools and a Locker from it. The command redlock calls it --config; package redlockfile is for
// programs.
package configfile

// Package configfile reads the file that describes a deployment: its masters, the login and the options that all
// clients share. It makes pools and a Locker from it. The command redlock reads this file if --config is given;
// programs use package redlockfile.
package configfile

// Package configfile reads the file that describes a deployment: the masters, the login, and the options that all
// clients share. It creates pools and a Locker from the file. The command redlock uses this package for --config;
// programs use package redlockfile.
package configfile

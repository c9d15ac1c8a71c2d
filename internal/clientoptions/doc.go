// Package clientoptions makes masters from the options of another Redis client. Each of the packages redlockgoredis,
// redlockrueidis and redlockvalkey maps the fields of its library to [Options]; what follows from them is decided here.
package clientoptions

// Package heartbeat contains the script with which a connection checks that the server is still the same and still fit
// to hold locks. The script replaces INFO, whose reply is 40 times as long.
package heartbeat

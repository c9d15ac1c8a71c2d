// Package heartbeat contains the script with which a connection checks whether the server is still the same, and fit
// to hold locks. The script is used instead of INFO, whose reply is 40 times as long.
package heartbeat

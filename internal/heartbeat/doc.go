// Package heartbeat has the script by which a connection learns whether the server is still the same, and fit to hold
// locks. It takes the place of INFO, whose reply is 40 times as long.
package heartbeat

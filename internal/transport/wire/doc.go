// Package wire makes connections to servers with redigo, and bounds the data that a server may send.
package wire

// Package wire is one connection to a server: how it is made with redigo, and what may pass over it.
package wire

// Package proxy simulates distant masters: a Proxy listens on loopback and forwards to a master, and delays each
// direction by half of the round trip and half of the delay of a fault. It does not limit the bytes in flight, so that
// pipelining works.
package proxy

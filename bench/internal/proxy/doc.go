// Package proxy simulates distant and slow masters. A Proxy listens on the loopback interface and forwards to a
// master. It delays each direction by half of the round trip plus half of the additional delay. It does not limit
// the bytes in flight, so that pipelining works.
package proxy

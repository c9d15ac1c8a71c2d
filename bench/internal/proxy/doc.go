// Package proxy simulates distant and slow masters. A Proxy listens on the loopback interface and forwards to a
// master. In each direction, it delays data by half of the round trip plus half of the additional delay. The number of
// bytes in flight is not limited, so that pipelining works.
package proxy

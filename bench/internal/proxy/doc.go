// Package proxy puts a master far away: a Proxy listens on loopback and hands on to the master, each way with half of a
// round trip, and half of what a fault adds. Bytes under way are not limited, so a pipeline stays one.
package proxy

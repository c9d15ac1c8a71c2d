// Package client tests that docs/protocol.md is sufficient for a client in another language. redlock.py is such a
// client, written from that page, with the standard library of Python only. The tests run it beside the library on real
// servers: no two clients hold a name at the same time, and tokens grow, while masters restart without their data.
package client

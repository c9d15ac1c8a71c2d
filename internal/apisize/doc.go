// Package apisize contains only a test, which limits the number of exported identifiers of each package.
package apisize

// Package examples has no code. Its test checks that every exported call has an example. It is
// home-made: no linter asks for examples.
package examples

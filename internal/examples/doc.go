// Package examples has no code. Its test checks that each call that users can make has an example.
package examples

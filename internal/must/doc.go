// Package must ends a test when a step that it needs has failed.
package must

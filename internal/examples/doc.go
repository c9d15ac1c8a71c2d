// Package examples contains only a test, which checks that every exported function and method has an example. No
// known linter checks this.
package examples

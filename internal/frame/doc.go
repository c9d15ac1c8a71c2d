// Package frame represents the calls that are sent to masters: a script with its arguments, or another command. A
// call is encoded once for any number of masters. Package scripts defines the scripts and their arguments.
package frame

// Package admin has the calls of an operator. They act on the masters, or on the locks of other clients; most of them
// are sub-commands of the command redlock. Programs that lock names do not need it.
package admin

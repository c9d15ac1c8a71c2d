package main

import "github.com/redlock-go/redlock/redlock"

// waitingOptions are the library's options for waiting in order that the setting asks for.
func waitingOptions(s setting) (list []redlock.LockOption) {
	if s.Fair {
		list = append(list, redlock.WithFair())
	}
	if s.Priority != 0 {
		list = append(list, redlock.WithPriority(s.Priority))
	}
	return list
}

//go:build unix && !linux

package main

import (
	"syscall"
	"time"
)

// Only Linux keeps track of descendants whose parents have died, and lists them. On other systems, a process that has
// left the group of the command cannot be found, except the command itself.

func dieWithThread(*syscall.SysProcAttr, syscall.Signal) {}

func becomeSubreaper() {}

func signalDescendants(syscall.Signal, int) {}

// signalCommand sends s to the command, whose process ID is pid, if the command has left the group.
func signalCommand(s syscall.Signal, pid, group int) {
	if own, err := syscall.Getpgid(pid); err == nil && own != group {
		_ = syscall.Kill(pid, s) // fails if the process has ended, or belongs to another user
	}
}

func killDescendants(int, time.Duration) []string { return nil }

func reapOrphans(int) {}

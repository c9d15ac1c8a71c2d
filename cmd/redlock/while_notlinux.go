//go:build unix && !linux

package main

// watchProcess closes h.ended when a process ends. It fails if no process has this number.
func (h *holder) watchProcess(pid int) error { return h.pollProcess(pid) }

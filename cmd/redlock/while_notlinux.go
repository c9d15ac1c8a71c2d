//go:build unix && !linux

package main

// watchProcess closes h.ended when a process ends. It fails if there is none of this number.
func (h *holder) watchProcess(pid int) error { return h.pollProcess(pid) }

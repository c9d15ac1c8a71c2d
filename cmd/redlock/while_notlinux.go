//go:build unix && !linux

package main

// watchProcess closes h.ended when the process pid ends. It returns an error if there is no such process.
func (h *holder) watchProcess(pid int) error { return h.pollProcess(pid) }

package main

import (
	"os/exec"
	"sync"
)

// helpers are the running password commands. They are children of this process and do not belong to the command that
// "run" runs, so they must be neither killed with that command nor reaped with its orphans.
var helpers helperSet

type helperSet struct {
	pids    sync.Map   // process IDs as int
	startMu sync.Mutex // held from the start of a process until pids contains it
}

// wait starts cmd and waits until it has ended.
func (s *helperSet) wait(cmd *exec.Cmd) error {
	s.startMu.Lock()
	err := cmd.Start()
	if err == nil {
		defer s.pids.Delete(cmd.Process.Pid)
		s.pids.Store(cmd.Process.Pid, nil)
	}
	s.startMu.Unlock()
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// has reports whether a process is a running password command. Unless startMu is held, a process that has just been
// started may be missing.
func (s *helperSet) has(pid int) bool {
	_, ok := s.pids.Load(pid)
	return ok
}

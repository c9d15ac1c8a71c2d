package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithThread makes the kernel send s to a process that is started with attr, when the thread that has started the
// process ends.
func dieWithThread(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }

// becomeSubreaper makes this process the new parent of its orphaned descendants, so that they remain descendants.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // cannot fail since Linux 3.4
}

// A procEntry is a process in /proc.
type procEntry struct {
	pid, parent, group int
	state              byte
	start              uint64 // start time; with pid, identifies a process
}

// dead reports whether the process has ended and only needs to be reaped.
func (p *procEntry) dead() bool { return p.state == 'Z' || p.state == 'X' }

// processes returns the processes in /proc.
func processes() (list []procEntry) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // use the names that were read despite an error
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat") // the process may have ended
		p := procEntry{pid: pid}
		// The name of the program, in parentheses, may contain any characters.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 20 {
			continue
		}
		p.state = fields[0][0]
		if _, err := fmt.Sscan(string(bytes.Join([][]byte{fields[1], fields[2], fields[19]}, []byte(" "))),
			&p.parent, &p.group, &p.start); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// descendants returns the descendants of this process that have not ended, except password commands and their
// descendants.
func descendants() (list []procEntry) {
	children := make(map[int][]procEntry)
	for _, p := range processes() {
		if !helpers.has(p.pid) {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	from := []int{os.Getpid()}
	for len(from) > 0 {
		next := children[from[0]]
		delete(children, from[0])
		from = from[1:]
		for _, p := range next {
			from = append(from, p.pid)
			if !p.dead() {
				list = append(list, p)
			}
		}
	}
	return list
}

// signalDescendants sends s to the descendants of this process that are not in group.
func signalDescendants(s syscall.Signal, group int) {
	for _, p := range descendants() {
		if p.group != group {
			//mutant:signal-descendants drop
			_ = syscall.Kill(p.pid, s) // fails if the process has ended, or belongs to another user
		}
	}
}

// signalCommand sends s to the command, whose process ID is pid, if the command has left the group.
func signalCommand(s syscall.Signal, pid, group int) {
	for _, p := range descendants() {
		if p.pid == pid && p.group != group {
			//mutant:signal-descendants drop
			_ = syscall.Kill(pid, s)
		}
	}
}

// killDescendants sends KILL to all descendants. A process that has received KILL starts no other process. One pass
// may miss a process whose parent ends meanwhile, so killDescendants stops only after two passes in a row have found
// no new process.
func killDescendants() {
	type id struct {
		pid   int
		start uint64
	}
	killed := make(map[id]bool)
	for walks, quiet := 0, 0; quiet < 2 && walks < 100; walks++ {
		quiet++
		for _, p := range descendants() {
			if id := (id{p.pid, p.start}); !killed[id] {
				killed[id], quiet = true, 0
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // fails if the process has ended, or belongs to another user
			}
		}
	}
}

// reapOrphans reaps children that have ended, but neither the process with the ID keep nor password commands. As
// process 1, or after the supervisor has died, this process inherits the children of other processes.
func reapOrphans(keep int) {
	self := os.Getpid()
	helpers.startMu.Lock()
	defer helpers.startMu.Unlock()
	for _, p := range processes() {
		if p.parent == self && p.state == 'Z' && p.pid != keep && !helpers.has(p.pid) {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// survivors returns the process IDs of the descendants that have not ended.
func survivors() (pids []int) {
	for _, p := range descendants() {
		pids = append(pids, p.pid)
	}
	return pids
}

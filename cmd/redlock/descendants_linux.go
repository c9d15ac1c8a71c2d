package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

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
			_ = syscall.Kill(p.pid, s) // fails if the process has ended, or belongs to another user
		}
	}
}

// signalCommand sends s to the command, whose process ID is pid, if the command has left the group.
func signalCommand(s syscall.Signal, pid, group int) {
	for _, p := range descendants() {
		if p.pid == pid && p.group != group {
			_ = syscall.Kill(pid, s)
		}
	}
}

// killDescendants sends KILL to the descendants of this process until none is left, or d has passed, and returns texts
// that name those that are left. The child keep is killed too, but neither reaped nor waited for.
//
// Descendants may start others and end faster than all of /proc is read. Therefore killDescendants repeats a fast step:
// it reads the children of this process, which include the processes whose parents have ended, and kills them. A
// process that has received KILL starts no other. A cgroup could do the same in one step, but only with rights that
// most users do not have, and it would move the command out of the cgroup that it was started in.
func killDescendants(keep int, d time.Duration) (left []string) {
	const shortest, longest = time.Millisecond, 50 * time.Millisecond
	var before []int
	pause := shortest
	for end, empty, step := time.Now().Add(d), 0, 0; ; step++ {
		if step%100 == 0 || pause > shortest { // also the children of processes that cannot be killed
			for _, p := range descendants() {
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // fails if the process has ended, or belongs to another user
			}
		}
		found := killChildren(keep)
		if empty++; len(found) > 0 {
			empty = 0
		}
		switch {
		case empty == 2: // in one reading, the end of a password command may have hidden a child
			return nil
		//mutant:last-descendant = !time.Now().Before(end.Add(-d))
		case !time.Now().Before(end):
			return namesOf(found)
		case len(found) > 0 && slices.Equal(found, before): // the kernel needs time to end the processes
			time.Sleep(pause)
			pause = min(2*pause, longest)
		default:
			pause = shortest
		}
		before = found
	}
}

// killChildren kills the children of this process, except keep and password commands, reaps those that have ended, and
// returns the process IDs of all of them.
func killChildren(keep int) []int {
	helpers.startMu.Lock()
	defer helpers.startMu.Unlock()
	found := children(keep)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL)               // as above
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // fails if the supervisor has reaped the process already
	}
	return found
}

// children returns the process IDs of the children of this process, including those that have ended and were not
// reaped, but neither keep nor password commands. helpers.startMu must be held.
//
// If there are no children, there are no descendants: when a process ends, its children become children of the main
// thread of this process in the same instant (see becomeSubreaper), and the list of the main thread is read last.
func children(keep int) (pids []int) {
	self := strconv.Itoa(os.Getpid())
	threads, _ := os.ReadDir("/proc/self/task")
	var list []byte
	for _, thread := range threads {
		if thread.Name() != self {
			of, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children") // the thread may have ended
			list = append(list, of...)
		}
	}
	of, err := os.ReadFile("/proc/self/task/" + self + "/children")
	if err != nil {
		return scanChildren(keep) // the kernel was built without CONFIG_PROC_CHILDREN
	}
	for _, field := range bytes.Fields(append(list, of...)) {
		if pid, err := strconv.Atoi(string(field)); err == nil && pid != keep && !helpers.has(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// scanChildren is like children, but reads all of /proc, which takes longer and may miss a process.
func scanChildren(keep int) (pids []int) {
	self := os.Getpid()
	for _, p := range processes() {
		if p.parent == self && p.pid != keep && !helpers.has(p.pid) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// namesOf returns texts that name the descendants of this process, whose children are pids.
func namesOf(pids []int) (names []string) {
	for _, p := range descendants() {
		if !slices.Contains(pids, p.pid) {
			pids = append(pids, p.pid)
		}
	}
	for _, pid := range pids {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // the process may have ended
		names = append(names, fmt.Sprintf("%d %q", pid, bytes.TrimSpace(name)))
	}
	return names
}

// reapOrphans reaps children that have ended, but neither the process with the ID keep nor password commands. As
// process 1, or after the supervisor has died, this process inherits the children of other processes.
func reapOrphans(keep int) {
	helpers.startMu.Lock()
	defer helpers.startMu.Unlock()
	for _, pid := range children(keep) {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

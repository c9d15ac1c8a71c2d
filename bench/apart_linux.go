package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepApart gives the processes of the servers one half of the processors that this process may use, and this process, with
// the client in it, the other. It reports false, and does nothing, where there are fewer than two. A process that is
// started later gets what its parent has, so whoever starts a server anew keeps it apart again.
func keepApart(servers []int) (bool, error) {
	client, masters, ok, err := halves()
	if !ok || err != nil {
		return false, err
	}
	errs := []error{confine(os.Getpid(), client)}
	for _, pid := range servers {
		errs = append(errs, confine(pid, masters))
	}
	return true, errors.Join(errs...)
}

// endApart lets all of them run where this process could at its start.
func endApart(servers []int) error {
	var errs []error
	for _, pid := range append([]int{os.Getpid()}, servers...) {
		errs = append(errs, confine(pid, atStart))
	}
	return errors.Join(errs...)
}

// atStart are the processors that this process could use when it was started.
var atStart, errAtStart = func() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(0, &set)
	return set, err
}()

func halves() (first, second unix.CPUSet, ok bool, err error) {
	n := atStart.Count()
	for cpu, seen := 0, 0; seen < n; cpu++ {
		if !atStart.IsSet(cpu) {
			continue
		}
		if seen++; seen <= n/2 {
			first.Set(cpu)
		} else {
			second.Set(cpu)
		}
	}
	return first, second, n >= 2, errAtStart
}

// confine lets all threads of a process run on these processors alone. A thread is made with what its maker has, so after a
// pass in which there were none that had to be told there are none.
func confine(pid int, to unix.CPUSet) error {
	for range 100 {
		tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*"))
		if err != nil {
			return err
		}
		told := 0
		for _, task := range tasks {
			tid, err := strconv.Atoi(filepath.Base(task))
			if err != nil {
				return err
			}
			var has unix.CPUSet
			if unix.SchedGetaffinity(tid, &has) != nil || has == to { // it may have ended
				continue
			}
			if err := unix.SchedSetaffinity(tid, &to); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("bench: cannot keep client and masters apart: %w", err)
			}
			told++
		}
		if told == 0 {
			return nil
		}
	}
	return errors.New("bench: cannot keep client and masters apart: there are new threads again and again")
}

//go:build linux

package main

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// processorsOf is where the main thread of a process may run.
func processorsOf(t *testing.T, pid int) (set unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

// Kept apart, client and masters have no processor in common, and all of them together what there was; afterwards each has all.
func TestKeepApart(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{Name: "apart"})[0]
	pids := []int{s.PID()}
	apart, err := keepApart(pids)
	defer func() {
		if err := endApart(pids); err != nil {
			t.Error(err)
		}
		if processorsOf(t, os.Getpid()) != atStart || processorsOf(t, s.PID()) != atStart {
			t.Error("afterwards they are still apart")
		}
	}()
	if err != nil || apart != (atStart.Count() >= 2) {
		t.Fatalf("apart: %v, %v, with %d processors", apart, err, atStart.Count())
	}
	if !apart {
		return
	}
	client, masters := processorsOf(t, os.Getpid()), processorsOf(t, s.PID())
	if client.Count() == 0 || masters.Count() == 0 || client.Count()+masters.Count() != atStart.Count() {
		t.Errorf("%d and %d processors of %d", client.Count(), masters.Count(), atStart.Count())
	}
	for cpu := range 8 * len(client) * 8 {
		if client.IsSet(cpu) && (masters.IsSet(cpu) || !atStart.IsSet(cpu)) {
			t.Errorf("the client has processor %d", cpu)
		}
	}
}

// An alarm never rings before its time, and rings as often as it is set.
func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{0, -time.Second, 100 * time.Microsecond, 3 * time.Millisecond, time.Nanosecond} {
		start := time.Now()
		if err := a.sleep(d); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if took := time.Since(start); took < d {
			t.Errorf("%v took %v", d, took)
		}
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
}

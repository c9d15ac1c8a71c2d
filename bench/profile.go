package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiled runs f and writes what its processor time and its allocations were spent on, where files are named. They are
// those of the whole process: with -impl and -goroutines one contender is left at a time.
func profiled(cpu, allocs string, f func() error) (err error) {
	if cpu != "" {
		out, err := os.Create(cpu)
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		if err := pprof.StartCPUProfile(out); err != nil {
			return fmt.Errorf("bench: %w", errors.Join(err, out.Close()))
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, out.Close())
		}()
	}
	if allocs == "" {
		return f()
	}
	runtime.MemProfileRate = 1 // every one, so that they can be counted a pair
	if err := f(); err != nil {
		return err
	}
	out, err := os.Create(allocs)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(out, 0), out.Close())
}

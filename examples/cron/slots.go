package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlock-go/redlock/redlock"
)

// Slots is a gocron.Locker. Of all programs that schedule a job for the same times, at most one runs the job at each
// time.
//
// Each time has a separate name. A program locks the name only while its clock is within Splay of that time, and checks
// the clock again when it has the lock. So the successful checks of all programs happen within twice Splay plus Apart.
// The first program keeps the name locked for that long, even if the program dies, so no other program can lock the
// name in time.
type Slots struct {
	Locker *redlock.Locker
	Now    func() time.Time              // the clock of the scheduler
	Every  time.Duration                 // time between two runs
	Splay  time.Duration                 // how early or late a run may start; less than half of Every
	Apart  time.Duration                 // maximum difference between the clocks of two programs
	Tell   func(slot int64, what string) // called with the outcome of each attempt

	mu   sync.Mutex
	runs map[string]*redlock.Lock // the lock of the current run of each job
}

// errLate is returned for a run that is too early or too late for its time.
var errLate = errors.New("too early or too late for the job: another program may have run it")

// slot returns the number of the time that is nearest to now, and reports whether now is within Splay of that time.
func (s *Slots) slot() (slot int64, near bool) {
	now := s.Now()
	at := now.Round(s.Every)
	return at.UnixNano() / int64(s.Every), now.Sub(at).Abs() <= s.Splay
}

// Lock implements gocron.Locker. If it returns an error, this program does not run the job this time.
func (s *Slots) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	slot, near := s.slot()
	if !near {
		s.Tell(slot, "late")
		return nil, errLate
	}
	// Wait for a moment, because the votes of a round may be split, so that no program gets the lock.
	lock, err := s.Locker.Lock(ctx, fmt.Sprintf("%s/%d", job, slot),
		redlock.WithMinHold(2*s.Splay+s.Apart), redlock.WithWaitLimit(s.Splay/2))
	if err != nil {
		s.Tell(slot, err.Error())
		return nil, err
	}
	if now, near := s.slot(); now != slot || !near {
		_ = lock.Unlock(ctx) // the name stays locked, so no program runs the job this time
		s.Tell(slot, "late: locked too late")
		return nil, errLate
	}
	s.Tell(slot, "locked")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = make(map[string]*redlock.Lock)
	}
	s.runs[job] = lock
	return lock, nil
}

// Run returns the lock of the current run of a job. The context of the lock ends when the lock is lost. The job must
// send the token of the lock with each write.
func (s *Slots) Run(job string) *redlock.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[job]
}

package hazard

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// Claim runs body, which shows that the claim of this id holds. Where the id is listed as a known fault, body must
// fail. It may run in a goroutine of its own, and has ended, with its cleanups, when Claim returns.
func Claim(t testing.TB, id string, body func(t testing.TB)) {
	t.Helper()
	fault, listed := known[id]
	if !listed {
		body(t)
		return
	}
	r := &recorder{TB: t}
	r.run(func() { body(r) })
	r.cleanUp()
	switch {
	case t.Skipped():
	case !r.Failed():
		t.Errorf("%s holds, and is listed as a known fault (%s): take it off the list", id, fault)
	default:
		t.Logf("known fault %s: %s\n%s", id, fault, strings.Join(r.said, "\n"))
	}
}

// Setup returns what the preparations of a claim are to fail by: a listed claim must fail for its own reason, so a
// failure of the preparations is one of the test.
func Setup(t testing.TB) testing.TB {
	if r, ok := t.(*recorder); ok {
		return &setup{TB: r.TB, r: r}
	}
	return t
}

// A recorder takes note of the failures of a body in place of the test. All else is the test's.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	said     []string
	cleanups []func()
}

// run calls f in a goroutine, which a fatal failure ends, and returns after it.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.note(true, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) cleanUp() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		r.run(f)
	}
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.said = append(r.said, strings.TrimSuffix(text, "\n"))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Fail() { r.note(true, "failed") }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Log(args ...any)                 { r.note(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.note(false, fmt.Sprintf(format, args...)) }

func (r *recorder) Error(args ...any)                 { r.note(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.note(true, fmt.Sprintln(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.note(true, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// A setup fails the test itself, from the goroutine of a body. Its cleanups are those of the body.
type setup struct {
	testing.TB
	r *recorder
}

func (s *setup) Cleanup(f func()) { s.r.Cleanup(f) }

func (s *setup) FailNow() {
	s.TB.Fail()
	runtime.Goexit()
}

func (s *setup) Fatal(args ...any) {
	s.TB.Helper()
	s.TB.Error(append([]any{"in the set-up:"}, args...)...)
	s.r.note(true, "the set-up failed")
	runtime.Goexit()
}

func (s *setup) Fatalf(format string, args ...any) {
	s.TB.Helper()
	s.TB.Errorf("in the set-up: "+format, args...)
	s.r.note(true, "the set-up failed")
	runtime.Goexit()
}

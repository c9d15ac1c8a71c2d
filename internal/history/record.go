package history

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
)

// Kinds of events.
const (
	Lock    = "lock"    // a call that starts a hold, or fails
	Reenter = "reenter" // a lock call that re-enters the same hold
	Extend  = "extend"
	Alive   = "alive" // the lock was checked, and valid
	Inner   = "inner" // an unlock of a re-entry, which does not end the hold
	Leave   = "leave" // the last unlock is about to be called; recorded before the call
	Kept    = "kept"  // a minimum hold: no other client may hold the name before Until, even if the lock is lost
	Unlock  = "unlock"
)

// An Event is one line of a history: a call with its outcome. Times are in nanoseconds and come from Stamp.
type Event struct {
	Op, Name, Hold string
	Call, Ret      int64
	Token          int64  `json:",omitempty"`
	Until          int64  `json:",omitempty"` // end of the validity that was reported to the holder at Ret
	On             int    `json:",omitempty"` // number of masters known to hold the lock
	Kind           string `json:",omitempty"` // result of KindOf, if the call failed
	Err            string `json:",omitempty"`
}

// OK reports whether the call succeeded.
func (e Event) OK() bool { return e.Err == "" }

// Stamp returns the time, in nanoseconds, of a clock that all processes of this machine share. On Linux, that clock
// cannot be set.
func Stamp() int64 {
	if runtime.GOOS == "linux" {
		return (*clock.Clock)(nil).Now().Steady()
	}
	return time.Now().UnixNano()
}

// A Recorder writes the history of one process. Each event is written by one write, so the history of a killed
// process ends early but has no other defect.
type Recorder struct {
	mu sync.Mutex
	f  *os.File
}

// NewRecorder returns a Recorder that appends to the file name.jsonl in dir.
func NewRecorder(dir, name string) (*Recorder, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &Recorder{f: f}, err
}

// Close closes the file.
func (r *Recorder) Close() error { return r.f.Close() }

// Put writes an event.
func (r *Recorder) Put(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.f.Write(append(line, '\n'))
	return err
}

// Call runs f, records its outcome, and returns its result. It panics if it cannot write, because a history with gaps
// proves nothing.
func (r *Recorder) Call(e Event, f func() (*redlock.Lock, error)) (*redlock.Lock, error) {
	e.Call = Stamp()
	lock, err := f()
	e.Ret = Stamp()
	if err != nil {
		e.Kind, e.Err = KindOf(err), err.Error()
	} else if lock != nil {
		e.Token, e.Until = lock.Token(), Until(lock)
		e.On, _ = client.HeldOn(lock)
	}
	if writeErr := r.Put(e); writeErr != nil {
		panic(writeErr)
	}
	return lock, err
}

// Look records an Alive event if the lock is valid.
func (r *Recorder) Look(lock *redlock.Lock, hold string) error {
	e := Event{Op: Alive, Name: lock.Name(), Hold: hold, Call: Stamp(), Until: Until(lock)}
	e.Ret = Stamp()
	e.On, _ = client.HeldOn(lock)
	if lock.Err() != nil || e.Until <= e.Call {
		return nil
	}
	return r.Put(e)
}

// Unlock calls f, which must release the lock. It records Alive and Leave events before the call, and an Unlock event
// after it. Unlock returns the error of f, or a write error.
func (r *Recorder) Unlock(lock *redlock.Lock, hold string, f func() error) error {
	if err := r.Look(lock, hold); err != nil {
		return err
	}
	if err := r.Put(Event{Op: Leave, Name: lock.Name(), Hold: hold, Call: Stamp()}); err != nil {
		return err
	}
	_, err := r.Call(Event{Op: Unlock, Name: lock.Name(), Hold: hold}, func() (*redlock.Lock, error) { return nil, f() })
	return err
}

// Until returns the end of the lock's validity, as a time of Stamp. It calls Stamp before Remaining, so that the result
// is never too late.
func Until(lock *redlock.Lock) int64 {
	now := Stamp()
	return now + int64(lock.Remaining())
}

// kinds contains the library's errors that injected faults may cause.
var kinds = []struct {
	name string
	err  error
}{
	{"lost", redlock.ErrLost},
	{"held", redlock.ErrHeld},
	{"no quorum", redlock.ErrNoQuorum},
}

// Kinds of all other errors.
const (
	KindContext = "context"
	KindOther   = "other"
)

// KindOf returns the kind of an error: "context" if the context ended before the masters had answered, and "other" if
// no fault explains it.
func KindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return KindContext
	}
	return KindOther
}

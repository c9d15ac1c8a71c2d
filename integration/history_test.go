package integration

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

// Kinds of events.
const (
	opLock    = "lock"    // a hold begins; also failed attempts
	opReenter = "reenter" // one more lock of the same hold
	opExtend  = "extend"
	opAlive   = "alive" // the lock was checked, and valid
	opInner   = "inner" // an unlock that is not the last one
	opLeave   = "leave" // the last unlock is about to be called; recorded before the call
	opKept    = "kept"  // a minimum hold: no other client may hold the name before Until, even if the lock is lost
	opUnlock  = "unlock"
)

// An event is one line of a history: a call with its outcome. Times are in nanoseconds, from stamp.
type event struct {
	Op, Name, Hold string
	Call, Ret      int64
	Token          int64  `json:",omitempty"`
	Until          int64  `json:",omitempty"` // end of the validity that was reported to the holder at Ret
	On             int    `json:",omitempty"` // number of masters known to hold the lock
	Kind           string `json:",omitempty"` // kind of the error, if it failed
	Err            string `json:",omitempty"`
}

func (e event) ok() bool { return e.Err == "" }

// stamp reads a clock that all processes of this machine share and that cannot be set, if there is one.
func stamp() int64 {
	if runtime.GOOS == "linux" {
		return (*clock.Clock)(nil).Now().Steady()
	}
	return time.Now().UnixNano()
}

// A recorder writes the history of one process. Each event is one write, so the history of a killed process ends early
// but has no other defect.
type recorder struct {
	mu sync.Mutex
	f  *os.File
}

func newRecorder(dir, name string) (*recorder, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &recorder{f: f}, err
}

func (r *recorder) close() error { return r.f.Close() }

func (r *recorder) put(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.f.Write(append(line, '\n'))
	return err
}

// call runs f, records its outcome, and returns its result. It panics if it cannot write, because a history with gaps
// proves nothing.
func (r *recorder) call(e event, f func() (*redlock.Lock, error)) (*redlock.Lock, error) {
	e.Call = stamp()
	lock, err := f()
	e.Ret = stamp()
	if err != nil {
		e.Kind, e.Err = kindOf(err), err.Error()
	} else if lock != nil {
		e.Token, e.Until = lock.Token(), until(lock)
		e.On, _ = lock.HeldOn()
	}
	if writeErr := r.put(e); writeErr != nil {
		panic(writeErr)
	}
	return lock, err
}

// until returns the end of the lock's validity. It reads the clock first, so that the result is never too late.
func until(lock *redlock.Lock) int64 {
	now := stamp()
	return now + int64(lock.Remaining())
}

// kinds are the outcomes that faults explain.
var kinds = []struct {
	name string
	err  error
}{
	{"lost", redlock.ErrLost},
	{"held", redlock.ErrHeld},
	{"no quorum", redlock.ErrNoQuorum},
}

const (
	kindContext = "context"
	kindOther   = "other"
)

// kindOf returns the kind of an error: "context" if the context ended before the masters had answered, and "other" if
// no fault explains it.
func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if redlockEnded(err) {
		return kindContext
	}
	return kindOther
}

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

// What an event tells of.
const (
	opLock    = "lock"    // a hold begins; also attempts that failed
	opReenter = "reenter" // one more lock of the same hold
	opExtend  = "extend"
	opAlive   = "alive" // a look at the lock, which was good
	opInner   = "inner" // an unlock that was not the last one
	opLeave   = "leave" // the last unlock is about to be called; written before it
	opKept    = "kept"  // a minimum hold: nobody else may have the name before Until, whatever becomes of the lock
	opUnlock  = "unlock"
)

// An event is one line of a history: a call with its outcome. Times are nanoseconds of stamp.
type event struct {
	Op, Name, Hold string
	Call, Ret      int64
	Token          int64  `json:",omitempty"`
	Until          int64  `json:",omitempty"` // to when the holder was told, at Ret, that it may rely on the lock
	On             int    `json:",omitempty"` // on how many masters the lock was known to be
	Kind           string `json:",omitempty"` // the decision, where it failed
	Err            string `json:",omitempty"`
}

func (e event) ok() bool { return e.Err == "" }

// stamp reads a clock that all processes of this machine share and that nobody sets, where there is one.
func stamp() int64 {
	if runtime.GOOS == "linux" {
		return (*clock.Clock)(nil).Now().Steady()
	}
	return time.Now().UnixNano()
}

// A recorder writes the history of one process. Each event is one write, so that a process that is killed leaves a
// history which ends early, and nothing else.
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

// call runs f and writes what came of it. It returns what f did, and panics where it cannot write: a history that has
// gaps proves nothing.
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

// until is to when a lock may be relied on; the clock is read first, so that it is never told too late a time.
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
	{"too slow", redlock.ErrTooSlow},
}

const (
	kindContext = "context"
	kindOther   = "other"
)

// kindOf is the decision that an error carries; "context" is one that ended before the masters had said enough, and
// "other" what no fault explains.
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

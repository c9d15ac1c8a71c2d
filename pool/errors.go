package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// The sentinels, reached through errors.Is. Their identities are part of the API; the texts are not.
var (
	// ErrInvalid: a master or an option given to New or Dial cannot be right. Nothing has been dialled.
	ErrInvalid = errors.New("pool: invalid configuration")
	// ErrClosed: the Pool is closed.
	ErrClosed = errors.New("pool: closed")
	// ErrRetired: the master is not used any more; see Pool.Release.
	ErrRetired = errors.New("pool: the master was retired")
	// ErrDown: there is no connection to the master, or the one there was ended before the reply came. It comes with
	// the cause, which errors.Is finds as well.
	ErrDown = errors.New("pool: master is down")
	// ErrConnecting: the first attempt to connect has not ended yet. It comes together with ErrDown.
	ErrConnecting = errors.New("pool: first connection is still being made")
	// ErrRefused: the server answers, and is not fit to hold locks. It comes together with ErrDown.
	ErrRefused = errors.New("pool: master is refused")
	// ErrTimeout: the one kind under which every timeout surfaces: dialling, handshake, an overdue reply, a write that
	// does not end.
	ErrTimeout = errors.New("pool: timed out")
	// ErrQueueFull: as many requests as WithQueueLimit allows are waiting for the master.
	ErrQueueFull = errors.New("pool: queue is full")
	// ErrSession: the call was stamped for another session than the one that is up.
	ErrSession = errors.New("pool: session has changed")
)

// Error is why one master gave no answer, or which error it answered. Its text never contains credentials.
type Error struct {
	// Addr names the master as [Pool.Addr] does.
	Addr string
	// Op is the name of the script, where the error is about one call. Else it is what failed: "connect", "auth",
	// "select", "info", "script load" while connecting; "read", "write", "watchdog", "heartbeat", "close" of a
	// connection that was up; "send".
	Op string
	// Err is the cause: a redis.Error when the master answered one.
	Err error
	// Unknown reports whether the call may have had, or may still have, an effect. Only a call whose first byte may
	// have been written and whose reply was not read is unknown.
	Unknown bool
}

// Error returns the text for people.
func (e *Error) Error() string {
	text := "pool: " + e.Addr + ": " + e.Op + ": " + strings.TrimPrefix(e.Err.Error(), "pool: ")
	if e.Unknown {
		text += " (outcome unknown)"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A cause is a text that is also several errors at once.
type cause struct {
	text string
	is   []error
}

func (c *cause) Error() string   { return c.text }
func (c *cause) Unwrap() []error { return c.is }

func newCause(text string, is ...error) *cause { return &cause{text: text, is: is} }

func invalid(format string, args ...any) error {
	return newCause("pool: "+fmt.Sprintf(format, args...), ErrInvalid)
}

func timeoutCause(format string, args ...any) error {
	return newCause(fmt.Sprintf(format, args...), ErrTimeout)
}

// downCause makes err the reason for which a master is down.
func downCause(err error) error {
	if errors.Is(err, ErrDown) || errors.Is(err, ErrClosed) {
		return err
	}
	return newCause("master is down: "+strings.TrimPrefix(err.Error(), "pool: "), ErrDown, err)
}

// isTimeout reports whether err is one of the many forms in which Go and redigo show a timeout.
func isTimeout(err error) bool {
	if errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// normalise gives every timeout the same identity and leaves other errors as they are.
func normalise(err error, within time.Duration) error {
	if err == nil || errors.Is(err, ErrTimeout) || !isTimeout(err) {
		return err
	}
	return newCause(fmt.Sprintf("timed out within %v: %v", within, err), ErrTimeout, err)
}

// replyCode returns the first word of an error reply. Servers before 7.0 wrap the error of a command inside a script
// in a text of their own ("ERR Error running script ...: @user_script:4: -READONLY ..."); the inner word counts.
func replyCode(err redis.Error) string {
	text := string(err)
	code, _, _ := strings.Cut(text, " ")
	if code != "ERR" {
		return code
	}
	if _, rest, ok := strings.Cut(text, ": -"); ok {
		if inner, _, _ := strings.Cut(rest, " "); isCode(inner) {
			return inner
		}
	}
	return code
}

func isCode(s string) bool {
	for _, r := range s {
		if r < 'A' || r > 'Z' {
			return false
		}
	}
	return s != ""
}

// isTransient reports whether the same call may succeed later on the same master.
func isTransient(err redis.Error) bool {
	switch replyCode(err) {
	case "OOM", "MISCONF", "READONLY", "LOADING", "BUSY", "TRYAGAIN", "NOREPLICAS", "MASTERDOWN":
		return true
	}
	return false
}

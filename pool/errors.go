package pool

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/fault"
)

// The sentinels, reached through errors.Is. Their identities are part of the API; the texts are not. A cause of ErrDown
// is found as well; ErrConnecting and ErrRefused come together with it.
var (
	ErrInvalid    = fault.ErrInvalid    // a master or an option cannot be right; nothing has been dialled
	ErrClosed     = fault.ErrClosed     // the Pool is closed
	ErrRetired    = fault.ErrRetired    // the master is not used any more; see [Pool.Release]
	ErrDown       = fault.ErrDown       // there is no connection to the master, or it ended before the reply came
	ErrConnecting = fault.ErrConnecting // the first attempt to connect has not ended yet
	ErrRefused    = fault.ErrRefused    // the server answers, and is not fit to hold locks
	ErrTimeout    = fault.ErrTimeout    // any timeout: dialling, handshake, an overdue reply, a write that does not end
	ErrQueueFull  = fault.ErrQueueFull  // as many requests as WithQueueLimit allows are waiting for the master
	ErrSession    = fault.ErrSession    // the call was stamped for another session than the one that is up
)

// Error is why one master gave no answer, or which error it answered. Its text never contains credentials.
type Error struct {
	Addr string // names the master as [Pool.Addr] does
	// Op is the name of the script, where the error is about one call. Else it is what failed: "connect", "auth",
	// "select", "info", "script load", "config get" while connecting; "read", "write", "watchdog", "heartbeat", "close"
	// of a connection that was up; "send"; "subscribe" and "subscription".
	Op  string
	Err error // the cause: a redis.Error when the master answered one
	// Unknown reports whether the call may have had, or may still have, an effect: a byte of it may have been written,
	// and its reply was not read.
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

// answerOf is what a master answered to the call itself. A reply that ended the connection is deeper in the chain.
func answerOf(err error) (reply redis.Error, ok bool) {
	if err == nil {
		return "", false
	}
	var e *Error
	if errors.As(err, &e) {
		reply, ok = e.Err.(redis.Error) //nolint:errorlint // one that is wrapped ended the connection, and answers no call
	}
	return reply, ok
}

// Answered reports whether err is an error that a master answered to this call, as opposed to having given no answer.
func Answered(err error) bool {
	_, ok := answerOf(err)
	return ok
}

// Transient reports whether a master answered an error that may pass: it is full, loading, read-only, or busy.
func Transient(err error) bool {
	reply, _ := answerOf(err)
	return fault.Transient(reply)
}

// NotLoaded reports whether a master had forgotten the script of an acquire: nothing was done. See [Pool.Send].
func NotLoaded(err error) bool { return hasCode(err, "NOSCRIPT") }

// IsWrongType reports whether a master answered that a key has a value of another type.
func IsWrongType(err error) bool { return hasCode(err, "WRONGTYPE") }

func hasCode(err error, code string) bool {
	reply, _ := answerOf(err)
	return fault.Code(reply) == code
}

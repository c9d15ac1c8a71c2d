package transport

import (
	"cmp"
	"errors"
	"net"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Error reports why one master did not reply, or the error with which it replied. Its text never contains
// credentials.
type Error struct {
	Addr string // names the master as [Transport.Addr] does
	// Op is the name of the script, if the error is about one call. Otherwise Op is the step that failed. While
	// connecting: "connect", "credentials", "auth", "select", "info", "find slot", "cluster nodes", "script load",
	// "config get", "client". On a connection that was up: "read", "write", "watchdog", "heartbeat", "failover", "close".
	// In Send: "send". It is "" if nothing was sent to the master.
	Op  string
	Err error // the cause: a redis.Error if the master replied with an error
	// User is the name that the client logs in with; "" if it is not known.
	User string
	// Unknown reports whether the call may have had, or may still have, an effect: a byte of it may have been written,
	// and its reply was not read.
	Unknown bool
}

// Error returns what failed, why, and how to fix it if that is known.
func (e *Error) Error() string {
	if _, do := e.Advice(cmp.Or(e.User, "USER")); do != "" {
		return e.WithoutAdvice() + "; " + do
	}
	return e.WithoutAdvice()
}

// WithoutAdvice returns the text without advice.
func (e *Error) WithoutAdvice() string {
	if e.Op == "" {
		return "pool: " + e.Addr + ": " + e.Reason()
	}
	return "pool: " + e.Addr + ": " + e.Op + ": " + e.Reason()
}

// Reason returns the text without the master, the operation and the advice, so that equal reasons have equal texts.
func (e *Error) Reason() string {
	said := fault.Inner(strings.TrimPrefix(e.Err.Error(), "pool: "))
	if text, where, _ := strings.Cut(said, " script: "); strings.Contains(where, "@user_script:") {
		said = text // the rest is for the authors of the script
	}
	said = strings.Replace(said, " ("+e.Op+")", "", 1)                    // of a timeout
	said = strings.Replace(said, "dial tcp "+e.Addr+": connect: ", "", 1) // the text begins with the address
	if op := (*net.OpError)(nil); errors.As(e.Err, &op) && op.Op != "dial" {
		// Neither the address again, nor the port of this connection, which differs each time.
		said = strings.Replace(said, op.Error(), op.Op+": "+strings.TrimPrefix(op.Err.Error(), op.Op+": "), 1)
	}
	// Do not say that the master is down if the cause is a setting of the server or of this client.
	switch {
	case e.Op == "auth", e.Op == "credentials", e.Op == "select", errors.Is(e.Err, fault.ErrRefused),
		fault.IsCode(e.Err, "NOAUTH"):
		said = strings.TrimPrefix(said, "master is down: ")
	}
	if e.Unknown {
		said += " (outcome unknown)"
	}
	return said
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// answerOf returns the error reply of a master to the call itself. An error reply that ended the connection is deeper
// in the chain, and does not count.
func answerOf(err error) (reply redis.Error, ok bool) {
	var e *Error
	if errors.As(err, &e) {
		reply, ok = e.Err.(redis.Error) //nolint:errorlint // one that is wrapped ended the connection, and answers no call
	}
	return reply, ok
}

// Answered reports whether err is an error reply of a master to this call, rather than the lack of a reply.
func Answered(err error) bool {
	_, ok := answerOf(err)
	return ok
}

// Transient reports whether err is an error reply that may not recur: the master is full, loading, read-only, or busy.
func Transient(err error) bool {
	reply, _ := answerOf(err)
	return fault.Transient(reply)
}

// NotLoaded reports whether the master did not know the script of an acquire. Such an acquire had no effect. See
// [Transport.Send].
func NotLoaded(err error) bool { return hasCode(err, "NOSCRIPT") }

// IsWrongType reports whether a master answered that a key holds a value of another type.
func IsWrongType(err error) bool { return hasCode(err, "WRONGTYPE") }

// ConcernsKey reports whether a master answered that the data of one key is not what the script expects. Locks with
// other names are not affected.
func ConcernsKey(err error) bool { return IsWrongType(err) || hasCode(err, "BADFENCE") }

func hasCode(err error, code string) bool {
	reply, _ := answerOf(err)
	return fault.Code(reply) == code
}

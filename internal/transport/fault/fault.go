package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrInvalid and ErrClosed are exported by the packages pool and redlock. Errors that match them have texts of their
// own.
var (
	ErrInvalid = errors.New("redlock: invalid call")
	ErrClosed  = errors.New("redlock: closed")
)

// Sentinel errors of package transport; package pool exports some of them. An error that matches ErrDown also matches
// its cause. ErrConnecting and ErrRefused always come together with ErrDown.
var (
	ErrPoolClosed = New("pool: the pool is closed", ErrClosed)
	ErrRetired    = errors.New("pool: the master was retired") // it is no longer used
	ErrDown       = errors.New("pool: master is down")         // or its connection ended before the reply came
	ErrConnecting = errors.New("pool: first connection is still being established")
	ErrRefused    = errors.New("pool: master is refused")   // the server answers, but is not fit to hold locks
	ErrTimeout    = errors.New("pool: timed out")           // of any kind: a dial, a handshake, a reply, a write
	ErrQueueFull  = errors.New("pool: queue is full")       // that of a master
	ErrSession    = errors.New("pool: session has changed") // that of the condition has ended
)

// A cause is an error with a text of its own that matches several errors.
type cause struct {
	text string
	is   []error
}

func (c *cause) Error() string   { return c.text }
func (c *cause) Unwrap() []error { return c.is }

// New returns an error with this text that matches each of is.
func New(text string, is ...error) error { return &cause{text: text, is: is} }

// Invalid returns an error that matches ErrInvalid.
func Invalid(format string, args ...any) error {
	return New("pool: "+fmt.Sprintf(format, args...), ErrInvalid)
}

// Timeout returns an error that matches ErrTimeout.
func Timeout(format string, args ...any) error { return New(fmt.Sprintf(format, args...), ErrTimeout) }

// Refused returns an error that matches ErrRefused.
func Refused(text string) error { return New("refused: "+text, ErrRefused) }

// Down returns an error that says that a master is down because of err. It matches ErrDown and err.
func Down(err error) error {
	return New("master is down: "+strings.TrimPrefix(err.Error(), "pool: "), ErrDown, err)
}

// Explain converts an error of a connection, or of an attempt to connect, into the reason why a master is down. The
// result contains no credentials. A timeout matches ErrDown and ErrTimeout but no context error, so that the deadline
// of a dial is not mistaken for that of a caller. within is the timeout that has passed.
func Explain(err error, password string, within time.Duration) error {
	err = Scrub(err, password)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = New("connection lost: the server closed it", CauseOf(err))
	case errors.Is(err, ErrDown) || errors.Is(err, ErrPoolClosed) || errors.Is(err, ErrRetired):
		return err
	case IsTimeout(err) && !errors.Is(err, ErrTimeout):
		err = Timeout("timed out within %v: %v", within, err)
	}
	return Down(err)
}

// IsTimeout reports whether err is a timeout, in any of the forms that Go and redigo return.
func IsTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, ErrTimeout) || errors.As(err, &n) && n.Timeout()
}

// Code returns the first word of an error reply, without what [Inner] removes.
func Code(err redis.Error) string {
	code, _, _ := strings.Cut(Inner(string(err)), " ")
	return code
}

// Inner returns the error of the command inside a script, if text is the error of a script on a server before 7.0. Such
// a server prepends words and positions ("ERR Error running script ...: @user_script:4: @user_script: 4: -READONLY
// ...", or only the last position if the script returns the error). Inner returns any other text unchanged.
func Inner(text string) string {
	if found := inner.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return text
}

var inner = regexp.MustCompile(`^(?:ERR Error running script .*)?@user_script: ?\d+: -?([A-Z]+ .*)$`)

// IsCode reports whether err is, or wraps, an error reply with this code.
func IsCode(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && Code(reply) == code
}

// Transient reports whether the call with this error reply may succeed later on the same master.
func Transient(reply redis.Error) bool {
	switch Code(reply) {
	case "OOM", "MISCONF", "READONLY", "LOADING", "BUSY", "TRYAGAIN", "NOREPLICAS", "MASTERDOWN":
		return true
	}
	return false
}

// ErrMoving is the reason why a master has no vote in a bucket whose slot is being moved: the locks in the slot migrate
// one by one.
var ErrMoving = errors.New("its hash slot is being migrated to another node: the lock keys move there one by one")

// Moves reports whether err means that the slot is being moved, or has moved. The locks in the slot may then be
// lost, even if the same node owns the slot again afterwards.
func Moves(err error) bool {
	return errors.Is(err, ErrMoving) || IsCode(err, "MOVED") || IsCode(err, "ASK") || IsCode(err, "TRYAGAIN")
}

// ContextError returns why ctx ended: its error, joined with its cause if that differs.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

func TestScrubHidesCredentials(t *testing.T) {
	_, parse := redis.DialURL("redis://user:secret%zz@h")
	for _, err := range []error{
		errors.New(`dial "redis://user:secret@h:1": refused`),
		errors.New(`dial redis://user:sec/secret@h:1: refused`),
		redis.Error("ERR unknown command `AUTH`, with args beginning with: `secret`"),
		parse,
	} {
		clean := Scrub(err, "secret")
		if strings.Contains(clean.Error(), "secret") {
			t.Errorf("the cleaned error contains the password: %q", clean)
		}
		for e := errors.Unwrap(clean); e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), "secret") {
				t.Errorf("the chain of the cleaned error contains the password: %q", e)
			}
		}
	}
	clean := Scrub(fmt.Errorf("auth: %w", redis.Error("ERR secret")), "secret")
	var reply redis.Error
	if !errors.As(clean, &reply) || reply != "ERR xxxxx" {
		t.Errorf("the cleaned error is no longer an error reply: %#v", clean)
	}
	if err := Scrub(fmt.Errorf("read: %w", io.EOF), "read"); !errors.Is(err, io.EOF) {
		t.Errorf("the cleaned error is no longer EOF: %v", err)
	}
	plain := errors.New("connection refused")
	if got := Scrub(plain, "secret"); !errors.Is(got, plain) || !errors.Is(plain, got) {
		t.Errorf("an error without credentials was changed: %v", got)
	}
}

func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"NOSCRIPT No matching script": "NOSCRIPT",
		"READONLY You can't write":    "READONLY",
		"ERR Error running script (call to f_1): @user_script:4: @user_script: 4: -READONLY You can't":  "READONLY",
		"@user_script: 43: -OOM command not allowed":                                                    "OOM",
		"ERR Error running script (call to f_1): @user_script:4: WRONGTYPE Operation against a key":     "WRONGTYPE",
		"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed":              "OOM",
		"ERR Error running script (call to f_1): @user_script:1: attempt to index -A nil value (a nil)": "ERR",
		"ERR value is not an integer": "ERR",
		"ERR weird: -1 is negative":   "ERR",
		"":                            "",
	} {
		if got := Code(redis.Error(text)); got != want {
			t.Errorf("the code of %q is %q, want %q", text, got, want)
		}
	}
}

// The deadline of a dial is reported as a timeout of the master, not as a deadline of the caller.
func TestTimeoutIsNoDeadlineOfCaller(t *testing.T) {
	err := Explain(fmt.Errorf("dial: %w", context.DeadlineExceeded), "", time.Second)
	if !errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: timeout %v, deadline %v", err, errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded))
	}
}

func TestMoves(t *testing.T) {
	for err, want := range map[error]bool{
		ErrMoving: true, Down(redis.Error("MOVED 1 a:1")): true, redis.Error("ASK 1 a:1"): true,
		redis.Error("TRYAGAIN Multiple keys request"): true, redis.Error("CLUSTERDOWN"): false, ErrTimeout: false,
	} {
		if Moves(err) != want {
			t.Errorf("Moves(%v) is %v", err, !want)
		}
	}
}

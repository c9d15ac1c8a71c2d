package scripts

import (
	"math"
	"strconv"
	"strings"
)

// A Notice is what a waiter's inbox gets: on this master the name is free, or kept for the waiter, or its hold is there.
type Notice struct {
	Kind   Word
	Waiter string
	Number uint64 // the waiter's, in its Locker
	Name   string
	// Ballot is the first one that a hold which was given was asked for with; of a name that is kept it is the bar.
	Ballot int64
	// Of a hold that was given: its id, and what the master that wrote it is admitted as.
	Hold, Marker string
}

// A Word says what a notice is about.
type Word byte

// The words of notices.
const (
	Free     Word = 'F'
	Reserved Word = 'R'
	Given    Word = 'G'
)

// ParseNotice reads what an inbox got, and reports whether it is a notice of a lock of p. Only what the release script
// writes is one.
func (p Prefix) ParseNotice(payload string) (n Notice, ok bool) {
	if payload == "" {
		return n, false
	}
	n.Kind = Word(payload[0])
	if n.Kind != Reserved && n.Kind != Free && n.Kind != Given {
		return Notice{}, false
	}
	rest := payload[1:]
	n.Waiter, rest, ok = cutSized(rest)
	if !ok || !IsReservation(n.Waiter) { // giving it back would end somebody's hold
		return Notice{}, false
	}
	number := n.Waiter[strings.LastIndexByte(n.Waiter, ':')+1:]
	if n.Number, ok = parsePlain[uint64](number); !ok {
		return Notice{}, false
	}
	if n.Kind == Given {
		if n.Hold, rest, ok = cutSized(rest); !ok || n.Hold == "" || IsReservation(n.Hold) {
			return Notice{}, false
		}
	}
	if n.Kind != Free {
		var ballot string
		ballot, rest, _ = strings.Cut(rest, ":")
		n.Ballot, ok = parsePlain[int64](ballot)
		if n.Kind == Reserved && !ok && strings.Trim(ballot, "0123456789") == "" {
			ok, n.Ballot = ballot != "", math.MaxInt64 // whatever stands there is told, also by hands that write more than fits
		}
		if !ok || n.Kind == Given && (n.Ballot == 0 || n.Ballot > MaxBallot) {
			return Notice{}, false
		}
	}
	if n.Kind == Given {
		if n.Marker, rest, ok = cutSized(rest); !ok || n.Marker == "" {
			return Notice{}, false
		}
	}
	name, ours := strings.CutPrefix(rest, string(p)+":{")
	name, whole := strings.CutSuffix(name, "}:lock")
	if n.Name = name; !ours || !whole || CheckName(n.Name) != nil {
		return Notice{}, false
	}
	return n, true
}

// cutSized cuts a text off that has its length and a colon before it.
func cutSized(s string) (text, rest string, ok bool) {
	size, rest, found := strings.Cut(s, ":")
	n, plain := parsePlain[int64](size)
	if !found || !plain || n > int64(len(rest)) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// parsePlain reads a number that is written in one way only: digits, without a zero or a sign before them.
func parsePlain[T int64 | uint64](s string) (T, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return T(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

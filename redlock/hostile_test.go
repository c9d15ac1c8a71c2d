package redlock_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A lie replaces the reply to a command with text. If ok is false, the reply is not replaced.
type lie = func(s *sent, reply string) (text string, ok bool)

// instead returns a lie that replaces every reply to the scripts of locks with text. It does not replace replies to
// the admission script, so that the masters vote.
func instead(text string) lie {
	return func(s *sent, _ string) (string, bool) {
		return text, slices.Contains([]string{"acquire", "extend", "release", "inspect"}, s.script())
	}
}

var serverTime = regexp.MustCompile(`server_time_usec:\d+`)

// clockOf returns a lie that replaces the time in the replies to INFO and to heartbeats with text.
func clockOf(text string) lie {
	return func(s *sent, reply string) (string, bool) {
		_, info, _ := strings.Cut(reply, "\r\n")
		switch s.script() {
		case "INFO":
		case "heartbeat":
			words := strings.Fields(info)
			words[len(words)-1] = text
			said := strings.Join(words, " ")
			return fmt.Sprintf("$%d\r\n%s\r\n", len(said), said), true
		default:
			return "", false
		}
		info = serverTime.ReplaceAllLiteralString(strings.TrimSuffix(info, "\r\n"), "server_time_usec:"+text)
		return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info), true
	}
}

const most = "9223372036854775807"

var lies = map[string]lie{
	"two replies":                  instead("-ERR a\r\n-ERR b\r\n"),
	"wrong types":                  instead("*4\r\n+2\r\n*0\r\n$-1\r\n:1\r\n"),
	"a text":                       instead("$5\r\nhello\r\n"),
	"null":                         instead("$-1\r\n"),
	"an unknown code":              instead("*3\r\n:" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"held forever":                 instead("*4\r\n:2\r\n:" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"held, free long ago":          instead("*4\r\n:2\r\n:-" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"stale, the largest fence":     instead("*3\r\n:3\r\n$16\r\n9007199254740991\r\n:1\r\n"),
	"stale, a fence too large":     instead("*3\r\n:3\r\n$19\r\n" + most + "\r\n:" + most + "\r\n"),
	"ahead, a negative time":       instead("*3\r\n:4\r\n$1\r\n0\r\n:-" + most + "\r\n"),
	"ahead, a time far too late":   instead("*3\r\n:4\r\n$1\r\n0\r\n:" + most + "\r\n"),
	"missing":                      instead("*4\r\n:5\r\n$1\r\n0\r\n:1\r\n:-2\r\n"),
	"abstained, with a long text":  instead("*3\r\n:6\r\n$20000\r\n" + strings.Repeat("x", 20000) + "\r\n:1\r\n"),
	"refused, an invalid record":   instead("*3\r\n:7\r\n$7\r\nnothing\r\n:1\r\n"),
	"a clock at the end of time":   clockOf(most),
	"a clock before all time":      clockOf("-" + most),
	"a clock that is an hour slow": clockOf("946681200000000"),
}

// A minority of masters with false replies loses only its votes: locks are acquired, extended and released as fast as
// without these masters, tokens depend only on the other masters, and the locks of other clients are respected.
func TestHostileMinorityLosesItsVotes(t *testing.T) {
	for name, say := range lies {
		subtest(t, name, 5, func(w *cluster) {
			liars := map[int]bool{1: true, 3: true}
			sufferLies(w, w.lied(liars, say), w.lied(liars, say))
		})
	}
}

// lied starts a client to which the masters in liars lie.
func (w *cluster) lied(liars map[int]bool, f lie) *peer {
	w.Helper()
	p := w.newPeer("client")
	p.answer = func(s *sent, reply string) (string, bool) {
		if !liars[s.master] {
			return "", false
		}
		return f(s, reply)
	}
	return p.open(w.masters.URLs()).ready()
}

func sufferLies(w *cluster, l, other *peer) {
	last := int64(0)
	for n := range 12 {
		start := time.Now()
		k := must(l.Lock(w.Context(), "a"))(w)
		inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
		if _, err := other.TryLock(w.Context(), "a"); err == nil || errors.Is(err, redlock.ErrTooSlow) {
			w.Fatalf("TryLock of another client while the lock is held: %v", err)
		}
		w.must(k.Extend(w.Context()), inner.Unlock(w.Context()), k.Unlock(w.Context()))
		w.wantSince(start, 2*time.Second)
		if k.Token() <= last || k.Token() > time.Now().Add(15*time.Second).UnixMicro() {
			w.Errorf("lock %d: the token %d is not above %d, or far ahead of the time", n, k.Token(), last)
		}
		last = k.Token()
		after(time.Duration(n) * 300 * time.Millisecond) // connections are restored, and heartbeats are sent
	}
}

package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A liar is a proxy between the Lockers and some of the in-memory masters that replaces replies; ok is false if it
// passes on the master's own reply.
type liar struct {
	masters *memory.Masters
	which   []string // URLs
	say     func(s *sent, reply []byte) (text string, ok bool)
}

func (v *liar) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	inner, err := v.masters.Dial(ctx, network, addr)
	if err != nil || !slices.Contains(v.which, "redis://"+addr) {
		return inner, err
	}
	client, server := net.Pipe()
	go v.relay(server, inner)
	return client, nil
}

// relay passes commands on one by one.
func (v *liar) relay(client, inner net.Conn) {
	defer client.Close()
	server := redis.NewConn(inner, 0, 0)
	defer server.Close()
	var in []byte
	for piece := make([]byte, 64<<10); ; {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		in = append(in, piece[:n]...)
		for {
			args, used := parseCommand(in)
			if used == 0 {
				break
			}
			in = in[used:]
			if !v.answer(client, server, args) {
				return
			}
		}
	}
}

func (v *liar) answer(client io.Writer, server redis.Conn, args []string) bool {
	list := make([]any, len(args)-1)
	for i, a := range args[1:] {
		list[i] = a
	}
	value, err := server.Do(args[0], list...)
	var reply redis.Error
	if err != nil && !errors.As(err, &reply) {
		return false
	}
	out := appendRESP(nil, value, reply)
	if text, ok := v.say(&sent{args: args}, out); ok {
		out = []byte(text)
	}
	_, err = client.Write(out)
	return err == nil
}

func appendRESP(b []byte, value any, reply redis.Error) []byte {
	switch x := value.(type) {
	case nil:
		if reply != "" {
			return fmt.Appendf(b, "-%s\r\n", string(reply))
		}
		return append(b, "$-1\r\n"...)
	case int64:
		return fmt.Appendf(b, ":%d\r\n", x)
	case string:
		return fmt.Appendf(b, "+%s\r\n", x)
	case []byte:
		return fmt.Appendf(b, "$%d\r\n%s\r\n", len(x), x)
	case []any:
		b = fmt.Appendf(b, "*%d\r\n", len(x))
		for _, e := range x {
			b = appendRESP(b, e, "")
		}
		return b
	}
	panic(fmt.Sprintf("no reply: %T", value))
}

// instead replaces every reply to the scripts of locks by a text. Admissions are not changed, so that the masters vote.
func instead(text string) func(*sent, []byte) (string, bool) {
	return func(s *sent, _ []byte) (string, bool) {
		return text, slices.Contains([]string{"acquire", "extend", "release", "inspect"}, s.script())
	}
}

var serverTime = regexp.MustCompile(`server_time_usec:\d+`)

// clockOf replaces the clock in the replies to INFO and to heartbeats.
func clockOf(text string) func(*sent, []byte) (string, bool) {
	return func(s *sent, reply []byte) (string, bool) {
		_, info, _ := bytes.Cut(reply, []byte("\r\n"))
		switch s.script() {
		case "INFO":
		case "heartbeat":
			words := strings.Fields(string(info))
			words[len(words)-1] = text
			said := strings.Join(words, " ")
			return fmt.Sprintf("$%d\r\n%s\r\n", len(said), said), true
		default:
			return "", false
		}
		info = serverTime.ReplaceAllLiteral(bytes.TrimSuffix(info, []byte("\r\n")), []byte("server_time_usec:"+text))
		return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info), true
	}
}

const most = "9223372036854775807"

var lies = map[string]func(*sent, []byte) (string, bool){
	"a bulk string of a gigabyte":  instead("$999999999\r\n"),
	"arrays in arrays":             instead(strings.Repeat("*1\r\n", 1000)),
	"half a reply":                 instead("*4\r\n:2\r\n$5"),
	"two replies":                  instead("-ERR a\r\n-ERR b\r\n"),
	"wrong types":                  instead("*4\r\n+2\r\n*0\r\n$-1\r\n:1\r\n"),
	"a text":                       instead("$5\r\nhello\r\n"),
	"null":                         instead("$-1\r\n"),
	"no code of a script":          instead("*3\r\n:" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"held forever":                 instead("*4\r\n:2\r\n:" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"held, free long ago":          instead("*4\r\n:2\r\n:-" + most + "\r\n$1\r\n0\r\n:1\r\n"),
	"stale, the fence at the end":  instead("*3\r\n:3\r\n$16\r\n9007199254740991\r\n:1\r\n"),
	"stale, the fence beyond it":   instead("*3\r\n:3\r\n$19\r\n" + most + "\r\n:" + most + "\r\n"),
	"ahead, and time runs back":    instead("*3\r\n:4\r\n$1\r\n0\r\n:-" + most + "\r\n"),
	"ahead, and it is far later":   instead("*3\r\n:4\r\n$1\r\n0\r\n:" + most + "\r\n"),
	"missing":                      instead("*4\r\n:5\r\n$1\r\n0\r\n:1\r\n:-2\r\n"),
	"abstained, with a long text":  instead("*3\r\n:6\r\n$20000\r\n" + strings.Repeat("x", 20000) + "\r\n:1\r\n"),
	"refused, by no record":        instead("*3\r\n:7\r\n$7\r\nnothing\r\n:1\r\n"),
	"a clock at the end of time":   clockOf(most),
	"a clock before all time":      clockOf("-" + most),
	"a clock that is an hour slow": clockOf("946681200000000"),
}

// A minority of masters with false replies costs only its votes: locks are acquired, extended and released as fast as
// without it, tokens are those of the other masters, and the locks of others are respected.
func TestVirtualAHostileMinorityCostsItsVotes(t *testing.T) {
	for name, say := range lies {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				v := &liar{masters: w.masters, which: []string{w.masters.URLs()[1], w.masters.URLs()[3]}, say: say}
				sufferLies(w, w.over(w.pool(pool.WithDialer(v.dial))), w.over(w.pool(pool.WithDialer(v.dial))))
			})
		})
	}
}

func sufferLies(w *world, l, other *redlock.Locker) {
	last := int64(0)
	for n := range 12 {
		start := time.Now()
		k, err := l.Lock(w.Context(), "a")
		if err != nil {
			w.Fatalf("lock %d: %v", n, err)
		}
		inner, err := l.Lock(k.Context(w.Context()), "a")
		if err != nil {
			w.Fatalf("re-entry %d: %v", n, err)
		}
		if _, err := other.TryLock(w.Context(), "a"); err == nil || errors.Is(err, redlock.ErrTooSlow) {
			w.Fatalf("another, while it is held: %v", err)
		}
		if err := errors.Join(k.Extend(w.Context()), inner.Unlock(w.Context()), k.Unlock(w.Context())); err != nil {
			w.Fatalf("the end of lock %d: %v", n, err)
		}
		if took := time.Since(start); took > 2*time.Second {
			w.Errorf("lock %d took %v", n, took)
		}
		if k.Token() <= last || k.Token() > time.Now().Add(15*time.Second).UnixMicro() {
			w.Errorf("lock %d: token %d after %d", n, k.Token(), last)
		}
		last = k.Token()
		after(time.Duration(n) * 300 * time.Millisecond) // connections come back, heartbeats pass
	}
}

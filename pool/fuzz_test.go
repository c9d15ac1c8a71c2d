package pool

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Whatever text names a master, New takes it or refuses it with an error that matches ErrInvalid and has nothing of a
// password; what it takes is named without one, and is the same again when it is named by that.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"redis://10.0.0.1:6379", "redis://user:s3cret-word@host:6380/2", "rediss://:s3cret-word@[::1]:6379", "valkey://HOST.", "unix:///run/redis.sock?db=1",
		"unix://user:s3cret-word@/a b/s", "redis://", "redis://:s3cret-word", "redis://host:99999", "redis://h/x", "http://h", "redis:h", "redis://h?a=s3cret-word",
		"redis://u:p%40ss@h", "redis://%zz", "redis://h:0x10", "", "\x00", "valkeys://h/2147483648", "redis://[fe80::1%25eth0]:1", "redis://]0",
		"redis:/?s3cret-word@",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		m := URL(raw)
		configs, err := resolve([]Master{m}, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || configs != nil {
				t.Fatalf("%q: %v", raw, err)
			}
			if _, secret, ok := strings.Cut(raw, "s3cret"); ok && strings.HasPrefix(secret, "-word@") && strings.Contains(err.Error(), "s3cret-word") {
				t.Fatalf("the password is shown: %v", err)
			}
			return
		}
		password := configs[0].password
		if m.name == "" || len(password) > 12 && strings.Contains(m.name, password) {
			t.Fatalf("%q is named %q", raw, m.name)
		}
		if m.network == "tcp" {
			if _, _, err := net.SplitHostPort(m.addr); err != nil {
				t.Fatalf("%q has the address %q", raw, m.addr)
			}
		}
		if configs[0].database < 0 {
			t.Fatalf("%q is database %d", raw, configs[0].database)
		}
	})
}

// Whatever an INFO says, it is read without harm, and a verdict on it is an error that matches ErrRefused or nil.
func FuzzInfo(f *testing.F) {
	f.Add("redis_version:7.0.15\r\nrun_id:a\r\nmaster_replid:b\r\nrole:master\r\nmaxmemory:0\r\nserver_time_usec:1\r\n")
	f.Add("run_id:\nrole:slave\n\n::\nmaxmemory:9223372036854775808\r\nloading:1")
	f.Add("maxmemory_policy:allkeys-lru\r\nmaxmemory:1\r\nrun_id:x\r\nmaster_replid:y\r\nrole:master")
	f.Fuzz(func(t *testing.T, text string) {
		i := parseInfo(text)
		if err := i.verdict(false); err != nil && !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		} else if err == nil && (i.RunID == "" || i.Role != "master") {
			t.Fatalf("%q is fit", text)
		}
		x := &patient{m: &master{}, opts: &CheckOptions{}, info: i, text: infoFields(text), asked: true}
		x.judgeInfo()
		x.judgeClock(i.Time, time.Second)
		for _, f := range x.findings {
			if f.What == "" || f.Endangers == "" || f.Do == "" {
				t.Fatalf("%#v", f)
			}
		}
	})
}

// A script is a connection from which the pieces of a text are read.
type script struct {
	net.Conn
	text []byte
	n    int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func (s *script) Close() error { return nil }

// Whatever bytes a server sends, in whatever pieces: replies are read until the connection ends, the same ones however they
// are cut, and no reply has more than the bounds say.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		":1\r\n", "+OK\r\n-ERR no\r\n", "*4\r\n:2\r\n:100\r\n$1\r\n7\r\n:1700000000000000\r\n", "$-1\r\n*-1\r\n*0\r\n", "$5\r\nhello\r\n$5\r\nhel", "*2\r\n*1\r\n:1\r\n",
		"$999999999\r\n", "*17\r\n", ":99999999999999999999\r\n", "\r\n", "+\n", "$3\r\nab\r\n\r\n", "$0\r\n\r\n", "$-0\r\n", "*+1\r\n:1\r\n",
	} {
		f.Add([]byte(seed), uint16(1))
		f.Add([]byte(seed), uint16(4096))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		whole, piecewise := replies(t, text, 1<<16), replies(t, text, int(n)+1)
		// A bad announcement takes with it what came in the same piece: one list may be longer, and begins as the other.
		if k := min(len(whole), len(piecewise)); !reflect.DeepEqual(whole[:k], piecewise[:k]) {
			t.Fatalf("cut in two ways it is %q and %q", whole[:k], piecewise[:k])
		}
	})
}

func replies(t *testing.T, text []byte, n int) []any {
	t.Helper()
	list := []any{}
	from := &script{text: bytes.Clone(text), n: n}
	c := redis.NewConn(&buffered{frugal: newFrugal(from), raw: from}, 0, 0)
	for {
		value, err := c.Receive()
		var reply redis.Error
		if err != nil && !errors.As(err, &reply) {
			return list
		}
		if size := sizeOf(value); size > maxCallReply {
			t.Fatalf("a reply of %d bytes", size)
		}
		if list = append(list, value); len(list) > len(text) {
			t.Fatal("more replies than bytes")
		}
	}
}

func sizeOf(value any) (n int) {
	switch v := value.(type) {
	case []byte:
		return len(v)
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	}
	return n
}

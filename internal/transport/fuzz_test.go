package transport

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// For any URL of a master, New accepts the master or returns an error that matches fault.ErrInvalid and does not
// contain the password. The name of an accepted master does not contain the password.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"redis://10.0.0.1:6379", "redis://user:s3cret-word@host:6380/2", "rediss://:s3cret-word@[::1]:6379",
		"valkey://HOST.", "unix:///run/redis.sock?db=1",
		"unix://user:s3cret-word@/a b/s", "redis://", "redis://:s3cret-word", "redis://host:99999", "redis://h/x",
		"http://h", "redis:h", "redis://h?a=s3cret-word",
		"redis://u:p%40ss@h", "redis://%zz", "redis://h:0x10", "", "\x00", "valkeys://h/2147483648",
		"redis://[fe80::1%25eth0]:1", "redis://]0",
		"redis:/?s3cret-word@",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		m := URL(raw)
		_, configs, err := settings([]Master{m}, nil)
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Fatalf("%q: the error does not match fault.ErrInvalid: %v", raw, err)
			}
			if _, secret, ok := strings.Cut(raw, "s3cret"); ok && strings.HasPrefix(secret, "-word@") &&
				strings.Contains(err.Error(), "s3cret-word") {
				t.Fatalf("the error contains the password: %v", err)
			}
			return
		}
		password := configs[0].Password
		if m.Name == "" || len(password) > 12 && strings.Contains(m.Name, password) {
			t.Fatalf("%q is named %q", raw, m.Name)
		}
		if m.network == "tcp" {
			if _, _, err := net.SplitHostPort(m.addr); err != nil {
				t.Fatalf("%q has the address %q", raw, m.addr)
			}
		}
		if configs[0].Database < 0 {
			t.Fatalf("%q selects the database %d", raw, configs[0].Database)
		}
	})
}

// Any INFO can be parsed. The verdict on the INFO is nil or an error that matches fault.ErrRefused.
func FuzzInfo(f *testing.F) {
	f.Add("redis_version:7.0.15\r\nrun_id:a\r\nmaster_replid2:b\r\nrole:master\r\nmaxmemory:0\r\nserver_time_usec:1\r\n")
	f.Add("run_id:a\r\nmaster_replid2:b\r\nserver_time_usec:1")
	f.Add("run_id:\nrole:slave\n\n::\nmaxmemory:9223372036854775808\r\nloading:1")
	f.Add("maxmemory_policy:allkeys-lru\r\nmaxmemory:1\r\nrun_id:x\r\nmaster_replid2:y\r\nrole:master")
	f.Fuzz(func(t *testing.T, text string) {
		fields := InfoFields(text)
		info := infoOf(fields)
		if err := info.verdict(&Config{}); err != nil && !errors.Is(err, fault.ErrRefused) {
			t.Fatal(err)
		} else if err == nil && (info.RunID == "" || info.Role != "master") {
			t.Fatalf("the INFO %q is judged as fit", text)
		}
		for _, f := range info.Unfit(&Config{}) {
			if f.What == "" || f.Risk == "" || f.Fix == "" {
				t.Fatalf("a field of the finding is empty: %#v", f)
			}
		}
	})
}

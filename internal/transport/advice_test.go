package transport

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H56, H114: the error for each of these mistakes quotes the server's reply, names the fix, and contains no password.
func TestErrorsSayWhatToDo(t *testing.T) {
	plain := startServer(t)
	withPassword := startServer(t, "--requirepass", "secret")
	full := startServer(t, "--maxclients", "1")
	proxy := startServer(t, "--rename-command", "INFO", "")
	busy := startServer(t)
	keep := must.Get(net.Dial("tcp", full.Addr()))(t)
	defer keep.Close()
	caller := must.Get(redis.Dial("tcp", busy.Addr()))(t)
	defer caller.Close()
	_ = caller.Send("EVAL", "while true do end", "0")
	must.Do(t, caller.Flush())
	for _, c := range []struct {
		name, url, want string
		opts            []Option
	}{
		{"no password", withPassword.URL(), "NOAUTH|set the password: in the file of --config, in the URL", nil},
		{"wrong password", "redis://:wrong@" + withPassword.Addr(), "WRONGPASS|the user and the password of this client",
			nil},
		{"unknown user", "redis://nobody:wrong@" + withPassword.Addr(), "WRONGPASS|the user and the password", nil},
		{"password if there is none", "redis://u:wrong@" + plain.Addr(), "the user and the password of this client", nil},
		{"password for no user", "redis://:wrong@" + plain.Addr(), "without any password", nil},
		{"max clients", full.URL(), "stop a program that holds no locks and has many connections there", nil},
		{"proxy", proxy.URL(), "this seems to be a proxy, which does not answer INFO", nil},
		{"busy", busy.URL(), "a script is running there: end it with `SCRIPT KILL`",
			[]Option{WithDialTimeout(10 * time.Second)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, []string{c.url}, c.opts...)
			err := waitDown(t, p, 0, fault.ErrDown)
			for want := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %[2]q: %[1]s", err, want)
				}
			}
			for _, err := range []error{err, p.Send(0, inspect("x"), Condition{}, newMailbox())} {
				if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, ":wrong@") {
					t.Errorf("the error contains a password: %s", text)
				}
			}
		})
	}
	waitUp(t, open(t, []string{withPassword.URL()}, WithCredentials("", "secret")))
}

// The error of a script or a command that the server does not have leads to redlock check, which lists all of them.
func TestAdviceOfMissingCommands(t *testing.T) {
	c := must.Get(redis.Dial("tcp", startServer(t, "--rename-command", "HSET", "").Addr()))(t)
	defer c.Close()
	const script = "return redis.call('HSET', KEYS[1], 'f', 'v')"
	for _, words := range [][]any{{"EVAL", script, 1, "k"}, {"HSET", "k", "f", "v"}} {
		_, err := c.Do(words[0].(string), words[1:]...)
		e := &Error{Op: "acquire", Err: err}
		if about, do := e.Advice("user"); about != "rights" || do != needCommands {
			t.Errorf("the advice for %v is %q, %q", err, about, do)
		}
	}
}

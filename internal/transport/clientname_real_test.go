package transport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// CLIENT LIST shows the name of the client and of the library, on the connection for calls and on that for messages.
func TestConnectionsHaveTheNameOfTheClient(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{})[0]
	admin := adminOf(t, s)
	p := open(t, []string{s.URL()})
	waitUp(t, p)
	defer p.Subscribe("channel", newEar()).Close()
	named := func(name string, n int) {
		t.Helper()
		eventually(t, name, func() bool { return strings.Count(clientList(t, admin), " name="+name+" ") == n })
	}
	named("redlock", 2)
	p.SetClientName("web 1/é", 0) // connections for messages that are up keep their name
	named("web-1/-;epoch=0", 1)
	if _, err := admin.Do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
		t.Fatal(err)
	}
	named("web-1/-;epoch=0", 2)
	p.SetClientName("", 3)
	named("redlock;epoch=3", 1)
	if list := clientList(t, admin); strings.Contains(list, "lib-name=") && strings.Count(list, "lib-name=redlock ") != 2 {
		t.Errorf("the library is not named:\n%s", list)
	}
}

// Neither a user without the right nor a server without the command keeps a master from voting, and Check does not
// advise to grant the right.
func TestNamesAreOptional(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		user bool
	}{
		{"a user without the right", nil, true},
		{"a server without the command", []string{"--rename-command", "CLIENT", ""}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := redistest.Test(t, 1, redisproc.Config{Args: c.args})[0]
			url := s.URL()
			if c.user {
				if _, err := adminOf(t, s).Do("ACL", minimum[1:]...); err != nil {
					t.Fatal(err)
				}
				url = "redis://lock:" + secret + "@" + s.Addr()
			}
			p := open(t, []string{url})
			waitUp(t, p)
			p.SetClientName("web-1", 0)
			if _, err := call(t, p, 0, inspect("x"), Stamp{}); err != nil {
				t.Error(err)
			}
			findings, err := p.Check(t.Context(), CheckOptions{Prefix: string(testPrefix)})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if strings.Contains(strings.ToLower(fmt.Sprint(f)), "client|") || f.About == "rights" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func adminOf(t *testing.T, s *redisproc.Server) redis.Conn {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func clientList(t *testing.T, admin redis.Conn) string {
	t.Helper()
	list, err := redis.String(admin.Do("CLIENT", "LIST"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

package transport

import (
	"fmt"
	"strings"
	"testing"
)

// CLIENT LIST shows the name of the client and of the library, on connections for calls and on connections for
// messages.
func TestConnectionsHaveTheNameOfTheClient(t *testing.T) {
	s := newServer(t)
	p := open(t, []string{s.url()})
	waitUp(t, p)
	defer p.Subscribe("channel", newEar()).Close()
	named := func(name string, n int) {
		t.Helper()
		eventually(t, name, func() bool {
			return strings.Count(s.text("CLIENT", "LIST"), " name="+name+" ") == n
		})
	}
	named("redlock", 2)
	p.SetClientName("web 1/é", 0) // existing connections for messages keep their name
	named("web-1/-;epoch=0", 1)
	s.do("CLIENT", "KILL", "TYPE", "pubsub")
	named("web-1/-;epoch=0", 2)
	p.SetClientName("", 3)
	named("redlock;epoch=3", 1)
	list := s.text("CLIENT", "LIST")
	if strings.Contains(list, "lib-name=") && strings.Count(list, "lib-name=redlock ") != 2 {
		t.Errorf("CLIENT LIST does not show the name of the library:\n%s", list)
	}
}

// A master votes even if the user lacks the right to set names, or the server does not know the command. Check does
// not advise to grant the right.
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
			s := newServer(t, c.args...)
			url := s.url()
			if c.user {
				s.do(minimum...)
				url = lockUser(s)
			}
			p := open(t, []string{url})
			waitUp(t, p)
			p.SetClientName("web-1", 0)
			if _, err := call(t, p, 0, inspect("x"), Stamp{}); err != nil {
				t.Error(err)
			}
			findings, err := p.Check(t.Context(), checkOptions())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if strings.Contains(strings.ToLower(fmt.Sprint(f)), "client|") || f.About == "rights" {
					t.Errorf("there is a finding about names: %+v", f)
				}
			}
		})
	}
}

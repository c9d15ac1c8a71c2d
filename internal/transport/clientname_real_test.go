package transport

import (
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// CLIENT LIST shows the name of the client and of the library, on connections for calls and on connections for
// messages.
func TestConnectionsHaveTheNameOfTheClient(t *testing.T) {
	s := newServer(t)
	p := open(t, []string{s.URL()})
	waitUp(t, p)
	defer p.Subscribe("channel", newEar()).Close()
	named := func(name string, n int) {
		t.Helper()
		redistest.Eventually(t, name, func() bool {
			return strings.Count(s.Text("CLIENT", "LIST"), " name="+name+" ") == n
		})
	}
	named("redlock", 2)
	p.SetClientName(1, &ClientName{Label: "web 1/é", Prefix: "a b", List: "0a"}) // those for messages keep their name
	named("web-1/-;prefix=a%20b;epoch=0;list=0a", 1)
	s.Do("CLIENT", "KILL", "TYPE", "pubsub")
	named("web-1/-;prefix=a%20b;epoch=0;list=0a", 2)
	p.SetClientName(1, &ClientName{Prefix: "p", Shard: "2/3", Epoch: 3, List: "0b", Observer: true})
	named("redlock;prefix=p;shard=2/3;epoch=3;list=0b;observer", 1)
	p.SetClientName(2, &ClientName{Label: "b", Prefix: "p", Epoch: 4, List: "0c"})
	named("b;prefix=p;epoch=4;list=0c|redlock;prefix=p;shard=2/3;epoch=3;list=0b;observer", 1)
	p.SetClientName(3, &ClientName{Label: "c", Prefix: "p", Epoch: 4, List: "0c"}) // differs only in its label
	p.SetClientName(1, nil)
	named("c;prefix=p;epoch=4;list=0c", 1)
	p.SetClientName(2, nil)
	p.SetClientName(3, nil)
	named("redlock", 1)
	list := s.Text("CLIENT", "LIST")
	if strings.Contains(list, "lib-name=") && strings.Count(list, "lib-name=redlock ") != 2 {
		t.Errorf("CLIENT LIST does not show the name of the library:\n%s", list)
	}
}

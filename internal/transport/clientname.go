package transport

import (
	"cmp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// library is the name of this library for CLIENT SETINFO, and the default name of a client.
const library = "redlock"

// epochMark separates the label and the epoch in the name of a connection, as in web-1/17;epoch=0.
const epochMark = ";epoch="

// SetClientName sets the name of the connections, which CLIENT LIST shows, to the label of the client and the epoch
// of its configuration. A later call replaces the name. Characters that Redis does not allow in a name are replaced
// by '-'.
func (t *Transport) SetClientName(label string, epoch int64) {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, cmp.Or(label, library)) + epochMark + strconv.FormatInt(epoch, 10)
	t.name.Store(&name)
	for _, m := range *t.list.Load() {
		if s := m.state.Load().sess; s != nil {
			s.rename()
		}
	}
}

func (t *Transport) clientName() string { return *t.name.Load() }

// introduction returns the commands by which operators recognize a connection. Their replies do not matter: Redis
// before 7.2 does not know CLIENT SETINFO, and the user may lack the rights.
func introduction(name string) (list [][]string) {
	list = [][]string{{"CLIENT", "SETNAME", name}, {"CLIENT", "SETINFO", "LIB-NAME", library}}
	if v := libraryVersion(); v != "" {
		list = append(list, []string{"CLIENT", "SETINFO", "LIB-VER", v})
	}
	return list
}

// libraryVersion returns the version of this module that the Go command has recorded in the program, or "".
var libraryVersion = sync.OnceValue(func() string {
	const path = "github.com/redlock-go/redlock"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
})

// introduce returns the introduction for the handshake. It returns nothing if a *redis.Pool makes the connection, since
// the dial function of that pool may set a name. The introduction must not come first in the handshake: a server that
// refuses a connection, for example because it has too many, reports the reason in its first reply, and the replies to
// the introduction are ignored.
func (s *session) introduce() (list []wire.Question) {
	if s.m.cfg.Foreign != nil {
		return nil
	}
	s.name = s.m.transport.clientName()
	for _, words := range introduction(s.name) {
		list = append(list, wire.Question{Op: "client", Command: words, TakeFunc: func(any) error { return nil }})
	}
	return list
}

// rename sends the client name if the name has changed since s last sent it.
func (s *session) rename() {
	t := s.m.transport
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	if name := t.clientName(); s.name != "" && s.name != name {
		s.name = name
		s.pipe.Queue(frame.Command("client", introduction(name)[0]...), func(any, error) {})
	}
}

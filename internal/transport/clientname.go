package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// library is the name of this library for CLIENT SETINFO, and the default label of a client.
const library = "redlock"

// A ClientName is what the names of connections, which CLIENT LIST shows, say about a client.
type ClientName struct {
	Label    string
	Prefix   string
	Shard    string // such as 2/3; "" if names are not sharded
	Epoch    int64
	List     string // hash of the whole configuration: the shard, the epoch and the lists of masters
	Observer bool   // whether the client acquires no locks
}

// prefixMark separates the label and the rest of the name of a connection, as in
// web-1/17;prefix=redlock;shard=2/3;epoch=1;list=0123abcd;observer.
const prefixMark = ";prefix="

// String returns the name of a connection. In the label, '|' and characters that Redis does not allow in a name are
// replaced by '-'.
func (client ClientName) String() string {
	text := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '|' {
			return '-'
		}
		return r
	}, cmp.Or(client.Label, library)) + prefixMark + url.PathEscape(client.Prefix)
	if client.Shard != "" {
		text += ";shard=" + client.Shard
	}
	text += fmt.Sprintf(";epoch=%d;list=%s", client.Epoch, client.List)
	if client.Observer {
		text += ";observer"
	}
	return text
}

// parseClientNames returns the clients in the name of a connection. The result is empty if this library has not set the
// name.
func parseClientNames(text string) (list []ClientName) {
	for name := range strings.SplitSeq(text, "|") {
		i := strings.LastIndex(name, prefixMark)
		if i < 0 {
			return nil
		}
		rest := name[i+1:]
		fields := pairs(strings.SplitSeq(rest, ";"), "=")
		client := ClientName{
			Label: name[:i], Shard: fields["shard"], List: fields["list"], Observer: strings.HasSuffix(rest, ";observer"),
		}
		var errs [2]error
		client.Prefix, errs[0] = url.PathUnescape(fields["prefix"])
		client.Epoch, errs[1] = strconv.ParseInt(fields["epoch"], 10, 64)
		if errors.Join(errs[:]...) != nil {
			return nil
		}
		list = append(list, client)
	}
	return list
}

// A namedClient is a client that uses a Transport.
type namedClient struct {
	key any // identifies the client
	ClientName
}

// SetClientName names a client that uses the Transport. The key identifies the client: a later call with the same
// key replaces the name, and removes it if client is nil. The name of the connections, which CLIENT LIST shows,
// consists of the names of all clients. Clients that differ only in their labels are named once.
func (t *Transport) SetClientName(key any, client *ClientName) {
	t.nameMu.Lock()
	t.named = slices.DeleteFunc(t.named, func(client namedClient) bool { return client.key == key })
	if client != nil {
		t.named = append(t.named, namedClient{key, *client})
	}
	var texts []string
	seen := map[ClientName]bool{}
	for _, client := range slices.Backward(t.named) {
		alike := client.ClientName
		if alike.Label = ""; !seen[alike] {
			seen[alike], texts = true, append(texts, client.String())
		}
	}
	slices.Sort(texts)
	name := cmp.Or(strings.Join(texts, "|"), library)
	t.name.Store(&name)
	t.nameMu.Unlock()
	for _, m := range *t.list.Load() {
		if s := m.state.Load().sess; s != nil {
			s.rename()
		}
	}
}

// ClientNames returns the names of the clients that use the Transport.
func (t *Transport) ClientNames() []ClientName { return parseClientNames(t.clientName()) }

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
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == path {
			return strings.TrimPrefix(module.Version, "v")
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
	for i, words := range introduction(s.name) {
		list = append(list, wire.Optional("client", func(_ any, refusal redis.Error) {
			// A refused CLIENT SETNAME is not repeated: it would be the last command in CLIENT LIST; see anonymous.
			if i == 0 && refusal != "" {
				s.name = ""
			}
		}, words...))
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

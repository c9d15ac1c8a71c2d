package transport

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Client is a client of the masters that is connected to one of them. A client whose connection has no name of this
// library is not Named: only its host, user and the name of its connection are known.
type Client struct {
	ClientName
	Named            bool
	Host, User, Name string
}

// Clients returns the clients that are connected to each master, except this one and observers, indexed by the name of
// the master. A master that does not answer within the dial timeout, or whose user may not run CLIENT LIST, is absent
// from the result.
//
// A connection without a name of this library is a client without a name if it may send the scripts of this library or
// receive its messages: see [anonymous].
func (t *Transport) Clients(ctx context.Context) map[string][]Client {
	all := map[string][]Client{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range *t.list.Load() {
		if m.ctx.Err() != nil {
			continue
		}
		wg.Go(func() {
			var text string
			err := m.cfg.Query(ctx, wire.Question{
				Op: "client list", Command: []string{"CLIENT", "LIST"}, TakeFunc: func(reply any) (err error) {
					text, err = redis.String(reply, nil)
					return err
				},
			})
			own := ownConnection{name: t.clientName(), database: t.Database(m.index)}
			if s := m.state.Load().sess; s != nil {
				own.addr = s.local
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				all[m.Name] = clientsOf(text, own)
			}
		})
	}
	wg.Wait()
	return all
}

// An ownConnection is the connection of this client to a master. A field that is "" is not known.
type ownConnection struct{ name, addr, database string }

// clientsOf returns the clients in the reply to CLIENT LIST, except own and observers. It omits subscription
// connections with names, because their names may contain an old epoch. The connection for calls of the same client is
// listed.
func clientsOf(text string, own ownConnection) []Client {
	list := []Client{}
	for line := range strings.Lines(text) {
		fields := pairs(strings.FieldsSeq(line), "=")
		named := parseClientNames(fields["name"])
		switch {
		case own.addr != "" && fields["addr"] == own.addr, fields["name"] == own.name && len(named) > 0:
		case fields["name"] == library: // a pool without a client
		case len(named) == 0 && anonymous(fields, own):
			client := Client{User: fields["user"], Name: fields["name"], Host: fields["addr"]}
			if host, _, err := net.SplitHostPort(client.Host); err == nil {
				client.Host = host
			}
			list = append(list, client)
		case strings.Contains(fields["flags"], "P"):
		default:
			for _, client := range named {
				if !client.Observer {
					list = append(list, Client{ClientName: client, Named: true})
				}
			}
		}
	}
	return list
}

// anonymous reports whether a connection without a name of this library may belong to a client. The user may lack the
// right to CLIENT SETNAME, or a *redis.Pool may have made the connection. CLIENT LIST shows the last command of a
// connection. Each connection for calls sends a script with every heartbeat, after its handshake, which ends with
// CLIENT SETINFO. So a connection to the same database counts if its last command is one of these, or if it has no name
// at all and subscribes to channels. It does not count if another library has introduced itself by CLIENT SETINFO.
//
// Other programs that run scripts in this database count too, because CLIENT LIST shows neither scripts nor channels. A
// client whose server permits no INFO in scripts, so that heartbeats end with INFO, is recognized only by lib-name.
func anonymous(fields map[string]string, own ownConnection) bool {
	by, cmd, named := fields["lib-name"], fields["cmd"], fields["name"] != ""
	subscribes := func(key string) bool { return fields[key] != "" && fields[key] != "0" }
	switch {
	case own.database != "" && fields["db"] != own.database, by != "" && by != library:
		return false
	case by == library || cmd == "evalsha" || cmd == "eval" || cmd == "client|setinfo":
		return true
	}
	return !named && (subscribes("sub") || subscribes("ssub"))
}

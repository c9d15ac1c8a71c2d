package transport

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Client is a connection of this library to a master: the label of the client, and the epoch of its configuration.
type Client struct {
	Label string
	Epoch int64
}

// Clients returns, by the address of the master, the clients that are connected to it, without this one. A client over
// a *redis.Pool, or without the right to CLIENT SETNAME, is not in it. A master that does not answer within the dial
// timeout, or whose user may not run CLIENT LIST, is absent.
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
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				all[m.Name] = clientsOf(text, t.clientName())
			}
		})
	}
	wg.Wait()
	return all
}

// clientsOf returns the clients in the reply to CLIENT LIST, without own. A connection for messages is left out,
// because its name may have an old epoch: its client has another connection.
func clientsOf(text, own string) []Client {
	list := []Client{}
	for line := range strings.Lines(text) {
		name, flags := "", ""
		for field := range strings.FieldsSeq(line) {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "name":
				name = value
			case "flags":
				flags = value
			}
		}
		i := strings.LastIndex(name, epochMark)
		if i < 0 || name == own || strings.Contains(flags, "P") {
			continue
		}
		if epoch, err := strconv.ParseInt(name[i+len(epochMark):], 10, 64); err == nil {
			list = append(list, Client{name[:i], epoch})
		}
	}
	return list
}

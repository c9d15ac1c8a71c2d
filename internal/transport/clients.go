package transport

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Client is another client that is connected to a master: its label, and the epoch of its configuration.
type Client struct {
	Label string
	Epoch int64
}

// Clients returns the clients that are connected to each master, except this one, indexed by the name of the master. It
// omits clients that connect with a *redis.Pool or lack the right to CLIENT SETNAME. A master that does not answer
// within the dial timeout, or whose user may not run CLIENT LIST, is absent from the result.
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

// clientsOf returns the clients in the reply to CLIENT LIST, except own. It omits subscription connections, because
// their names may contain an old epoch. The connection for calls of the same client is listed.
func clientsOf(text, own string) []Client {
	list := []Client{}
	for line := range strings.Lines(text) {
		fields := pairs(strings.FieldsSeq(line), "=")
		name := fields["name"]
		i := strings.LastIndex(name, epochMark)
		if i < 0 || name == own || strings.Contains(fields["flags"], "P") {
			continue
		}
		if epoch, err := strconv.ParseInt(name[i+len(epochMark):], 10, 64); err == nil {
			list = append(list, Client{name[:i], epoch})
		}
	}
	return list
}

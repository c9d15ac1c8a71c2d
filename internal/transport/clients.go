package transport

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// Clients returns, by the address of the master, the names of the connections of this library to it, as
// [Transport.SetClientName] sets them, without those of this Transport: sorted, each once. A master that does not
// answer within the dial timeout, or whose user may not run CLIENT LIST, is absent.
func (t *Transport) Clients(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range *t.list.Load() {
		if m.ctx.Err() != nil {
			continue
		}
		wg.Go(func() {
			var text string
			c, _, err := m.cfg.Connect(ctx, func(c *wire.Conn) (string, error) {
				return c.Ask([]wire.Question{{
					Op: "client list", Command: []any{"CLIENT", "LIST"}, TakeFunc: func(reply any) (err error) {
						text, err = redis.String(reply, nil)
						return err
					},
				}})
			})
			if err != nil {
				return
			}
			c.Close()
			mu.Lock()
			defer mu.Unlock()
			all[m.Name] = clientNames(text, t.clientName())
		})
	}
	wg.Wait()
	return all
}

// clientNames returns the names of the connections of this library in the reply to CLIENT LIST, without own. Servers
// before Redis 7.2 do not show the library; then each name counts.
func clientNames(text, own string) []string {
	names := []string{}
	for line := range strings.Lines(text) {
		name, lib, shown := "", "", false
		for field := range strings.FieldsSeq(line) {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "name":
				name = value
			case "lib-name":
				lib, shown = value, true
			}
		}
		if name != "" && name != own && (!shown || lib == library) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

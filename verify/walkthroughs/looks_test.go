package walkthroughs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/admin"
)

// Steps that inspect the state, and steps that send commands directly to masters.

// together describes each master with f, and groups masters with the same description.
func (s *step) together(f func(n int, m *memory.Master) string) string {
	lines, order := map[string][]int{}, []string(nil)
	for i := range s.masters.N() {
		text := f(i+1, s.masters.Master(i))
		if lines[text] == nil {
			order = append(order, text)
		}
		lines[text] = append(lines[text], i+1)
	}
	var b strings.Builder
	for _, text := range order {
		b.WriteString("  " + wrap(mastersText(lines[text])+": "+text) + "\n")
	}
	return b.String()
}

// whoHolds describes the holder of a name, according to the masters and according to each client.
func (s *step) whoHolds(name string) string {
	text := "at " + seconds(s.now()) + "\n" + s.together(func(_ int, m *memory.Master) string {
		id, _, left := m.Holds(name)
		if id == "" {
			return "free"
		}
		return s.name(id) + " until " + seconds(s.now()+left)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.clients {
		if !p.dead {
			text += "  " + wrap(p.name+" "+p.word(name)) + "\n"
		}
	}
	return text
}

// word describes whether the client holds a name.
func (p *client) word(name string) string {
	k := p.lock(name)
	switch {
	case k != nil && k.Err() == nil:
		on, n := clients.HeldOn(k)
		return fmt.Sprintf("holds it until %s, on %d of %d, token %s",
			seconds(p.w.now()+k.Remaining()), on, n, p.w.ballot(k.Token()))
	case p.waiting[name] > 0:
		return "waits for it"
	case k != nil:
		return "knows that its lock has ended: " + plainly(errors.Unwrap(k.Err()))
	}
	return "does not hold it"
}

// show describes the keys of the masters, the queues, or the states that a client reports for the masters.
func (s *step) show(what string) string {
	return s.together(func(n int, m *memory.Master) string {
		switch what {
		case "masters":
			var list []string
			for _, key := range m.Keys() {
				list = append(list, s.keyWords(m, key))
			}
			return strings.Join(list, "; ")
		case "queues":
			return s.queueWords(n)
		}
		list := admin.Of(s.client(what).Locker).Masters()
		if n > len(list) {
			return "not used"
		}
		info := list[n-1]
		switch {
		case info.Left > 0:
			return string(info.State) + " for another " + seconds(info.Left)
		case info.Err != nil:
			return string(info.State) + ": " + plainly(info.Err)
		}
		return string(info.State)
	})
}

// keyWords describes one key of a master.
func (s *step) keyWords(m *memory.Master, key string) string {
	name, kind, _ := strings.Cut(strings.TrimPrefix(key, string(prefix)+":{"), "}:")
	text, _ := m.Get(key)
	switch {
	case key == prefix.Admission():
		return s.recordWords(text)
	case kind == "":
		name, _ = strings.CutSuffix(name, "}")
		fence := "fence of " + name + " " + s.ballot(number(m.Fence(name)))
		if id, _, left := m.Holds(name); left > 0 {
			return name + " of " + s.scenario.name(id) + "; " + fence
		}
		return fence
	}
	return kind + " of " + name
}

func (s *step) queueWords(master int) string {
	keys := prefix.Keys("orders")
	h, err := scripts.DecodeHolding(s.eval(master, scripts.NewEncoder(prefix, 0).Inspect(&keys, 0)))
	switch {
	case err != nil:
		return err.Error()
	case h.Waiters == 0:
		return "no client waits"
	}
	var list []string
	for _, id := range h.First {
		list = append(list, s.name(id))
	}
	return fmt.Sprint(h.Waiters, " waiting: ", strings.Join(list, ", "))
}

// repeat executes the last call of a script again, on a separate connection. Example: repeat acquire from A to 3.
func (s *step) repeat() {
	for _, n := range numbers(s.words[5]) {
		l := s.client(s.words[3]).links[n-1]
		s.mu.Lock()
		var last []string
		for _, args := range l.sent {
			if script := scriptOf(args); script != nil && script.Name == s.words[1] {
				last = args
			}
		}
		s.mu.Unlock()
		reply := s.ask(n, last)
		s.mu.Lock()
		s.logMessage(l, last, reply)
		s.mu.Unlock()
	}
	s.passes(settles)
}

// eval runs a script on a master, counted from 1, and returns the reply.
func (s *step) eval(master int, c *frame.Call) any {
	return s.ask(master, c.Words("", true))
}

// ask sends a command to a master, counted from 1, on a separate connection, and returns the reply.
func (s *step) ask(master int, args []string) any {
	nc, err := s.masters.Dial(context.Background(), "tcp", s.masters.Master(master-1).Addr())
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	list := make([]any, len(args)-1)
	for i, a := range args[1:] {
		list[i] = a
	}
	reply, err := redis.NewConn(nc, 0, 0).Do(args[0], list...)
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case err != nil:
		panic(err)
	}
	return reply
}

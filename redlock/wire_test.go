package redlock_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A sent is a command that a pool wrote.
type sent struct {
	master int
	at     time.Time
	args   []string
}

// script returns the name of the script that the command runs, or the name of a command that runs no script.
func (s *sent) script() string {
	if s.args[0] == "EVALSHA" {
		for _, one := range scripts.All {
			if one.SHA == s.args[1] {
				return one.Name
			}
		}
	}
	return s.args[0]
}

// arg returns an argument of the script, counted from 0, or "" if there are fewer.
func (s *sent) arg(n int) string {
	keys, err := strconv.Atoi(s.args[2])
	if err != nil || 3+keys+n >= len(s.args) {
		return ""
	}
	return s.args[3+keys+n]
}

// ballot returns the first ballot of an acquire, or the new fence of a release; "0" if the release raises no fence.
func (s *sent) ballot() string {
	if s.script() == "acquire" {
		return s.arg(3)
	}
	return cmp.Or(s.arg(1), "0")
}

// waiter returns the waiter in an acquire or a release, or "" if there is none.
func (s *sent) waiter() string {
	if s.script() == "acquire" {
		return s.arg(7)
	}
	return s.arg(4)
}

// A wire dials masters and records the commands that are written to them, in order. It can block the connections to
// some masters.
type wire struct {
	masters *memory.Masters

	mu      sync.Mutex
	log     []sent
	inbox   string       // the channel of the last subscription
	blocked map[int]bool // masters that cannot be reached
}

var errBlocked = errors.New("no route to the master")

func (v *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	i := slices.Index(v.masters.URLs(), "redis://"+addr)
	v.mu.Lock()
	blocked := v.blocked[i]
	v.mu.Unlock()
	if blocked {
		return nil, errBlocked
	}
	nc, err := v.masters.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: nc, v: v, master: i}, nil
}

// block blocks new connections to the given masters from the Lockers that use this wire; it replaces the list of an
// earlier call.
func (v *wire) block(which ...int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blocked = map[int]bool{}
	for _, i := range which {
		v.blocked[i] = true
	}
}

// sent returns the scripts with these names, or all commands, that were written since the last clear.
func (v *wire) sent(names ...string) (list []sent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.log {
		if len(names) == 0 || slices.Contains(names, s.script()) {
			list = append(list, s)
		}
	}
	return list
}

func (v *wire) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = nil
}

// A wireConn is one connection of a wire.
type wireConn struct {
	net.Conn
	v      *wire
	master int
	rest   []byte // the start of an incomplete command
}

func (c *wireConn) Write(b []byte) (int, error) {
	c.v.mu.Lock()
	c.rest = append(c.rest, b...)
	for {
		args, used := parseCommand(c.rest)
		if used == 0 {
			break
		}
		c.rest = c.rest[used:]
		c.v.log = append(c.v.log, sent{c.master, time.Now(), args})
		if args[0] == "SUBSCRIBE" {
			c.v.inbox = args[1]
		}
	}
	c.v.mu.Unlock()
	return c.Conn.Write(b)
}

// parseCommand reads one command, an array of bulk strings, and returns its length in bytes, or 0 if it is incomplete.
func parseCommand(b []byte) (args []string, used int) {
	line := func() (int, bool) {
		end := bytes.Index(b[used:], []byte("\r\n"))
		if end < 1 {
			return 0, false
		}
		n, err := strconv.Atoi(string(b[used+1 : used+end]))
		used += end + 2
		return n, err == nil
	}
	n, ok := line()
	if !ok {
		return nil, 0
	}
	for range n {
		size, ok := line()
		if !ok || size < 0 || used+size+2 > len(b) {
			return nil, 0
		}
		args = append(args, string(b[used:used+size]))
		used += size + 2
	}
	return args, used
}

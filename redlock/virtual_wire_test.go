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

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A sent is a command as a pool wrote it.
type sent struct {
	master int
	at     time.Time
	args   []string
}

// script is the name of the script that it runs, or the command.
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

// arg is one of the script's arguments, counted from 0; "" where it has fewer.
func (s *sent) arg(n int) string {
	keys, err := strconv.Atoi(s.args[2])
	if err != nil || 3+keys+n >= len(s.args) {
		return ""
	}
	return s.args[3+keys+n]
}

// grant is the id of the grant that it is about; "" where it is about none.
func (s *sent) grant() string {
	switch s.script() {
	case "acquire", "extend":
		return s.arg(1)
	case "release":
		return s.arg(0)
	}
	return ""
}

// ballot is the first one of an acquire, or what a release raises the fence to; "0" where that is nothing.
func (s *sent) ballot() string {
	if s.script() == "acquire" {
		return s.arg(3)
	}
	return cmp.Or(s.arg(1), "0")
}

// waiter is the waiter that an acquire or a release names; "" where it names none.
func (s *sent) waiter() string {
	if s.script() == "acquire" {
		return s.arg(6)
	}
	return s.arg(3)
}

// A wire dials masters and records what is written to them, in order. A Locker behind it can be kept from some
// masters.
type wire struct {
	masters *redlocktest.Masters

	mu      sync.Mutex
	log     []sent
	inbox   string       // the channel that was last subscribed to
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

// block keeps the Lockers behind the wire from masters, from their next connection on.
func (v *wire) block(which ...int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blocked = map[int]bool{}
	for _, i := range which {
		v.blocked[i] = true
	}
}

// sent returns the scripts of these names, or all, that were written so far; clear forgets them.
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
	rest   []byte // the beginning of a command that is not complete
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

// parseCommand reads one command, an array of bulk strings, and how many bytes it took; 0 where it is not complete.
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

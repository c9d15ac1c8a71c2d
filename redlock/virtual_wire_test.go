package redlock_test

import (
	"bytes"
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

// hold is the id of the hold that it is about; "" where it is about none.
func (s *sent) hold() string {
	switch s.script() {
	case "acquire", "extend":
		return s.args[7]
	case "release":
		return s.args[10]
	}
	return ""
}

// A wire dials masters and records what is written to them, in order. A Locker behind it can be frozen, as if its
// machine were suspended, or kept from some masters.
type wire struct {
	masters *redlocktest.Masters

	mu      sync.Mutex
	log     []sent
	quiet   bool          // nothing is recorded
	frozen  chan struct{} // not nil while nothing passes; closed by thaw
	blocked map[int]bool  // masters that cannot be reached
}

var errBlocked = errors.New("no route to the master")

func (v *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	i := slices.Index(v.masters.URLs(), "redis://"+addr)
	v.mu.Lock()
	blocked, gate := v.blocked[i], v.frozen
	v.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if blocked {
		return nil, errBlocked
	}
	nc, err := v.masters.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: nc, v: v, master: i, closed: make(chan struct{})}, nil
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

func (v *wire) freeze() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen == nil {
		v.frozen = make(chan struct{})
	}
}

func (v *wire) thaw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil {
		close(v.frozen)
		v.frozen = nil
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
	once   sync.Once
	closed chan struct{}
}

// pass waits while the wire is frozen, and reports whether the connection is still there.
func (c *wireConn) pass() bool {
	for {
		c.v.mu.Lock()
		gate := c.v.frozen
		c.v.mu.Unlock()
		if gate == nil {
			return true
		}
		select {
		case <-gate:
		case <-c.closed:
			return false
		}
	}
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *wireConn) Write(b []byte) (int, error) {
	if !c.pass() {
		return 0, net.ErrClosed
	}
	c.v.mu.Lock()
	if !c.v.quiet {
		c.rest = append(c.rest, b...)
		for {
			args, used := parseCommand(c.rest)
			if used == 0 {
				break
			}
			c.rest = c.rest[used:]
			c.v.log = append(c.v.log, sent{c.master, time.Now(), args})
		}
	}
	c.v.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
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
		if !ok || used+size+2 > len(b) {
			return nil, 0
		}
		args = append(args, string(b[used:used+size]))
		used += size + 2
	}
	return args, used
}

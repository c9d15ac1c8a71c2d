package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A server is one in-memory master. What its scripts do is decided by the same code that package redlocktest has, which
// a test of the library holds against a real server. Its fields are guarded by world.mu.
type server struct {
	w     *world
	index int
	addr  string

	state   master.State
	env     master.Env
	clock   skewed
	loaded  map[string]*scripts.Script
	subs    map[string][]*conn
	down    bool
	hung    bool
	replica bool
	refusal string // answer of every script, for want of memory for instance
	mute    int    // scripts that take effect while their reply and connection are lost
	backlog []arrival

	forgot   time.Time       // when it last lost something
	saved    *master.State   // its last snapshot; nil: none
	relics   map[string]bool // holds that came back with it
	ended    map[string]bool // holds whose end it has executed, as far as it remembers
	identity int
}

// An arrival is what came while the server hung.
type arrival struct {
	n        *conn
	commands []command
}

// skewed is a clock that showed micros at base and gains at rate.
type skewed struct {
	base   time.Time
	micros int64
	rate   float64
}

func (c skewed) now() int64 {
	return c.micros + int64(float64(time.Since(c.base).Microseconds())*c.rate)
}

// set makes the clock differ by offset from true time now, and gain at rate from here on.
func (s *server) set(offset time.Duration, rate float64) {
	now := time.Now()
	s.clock = skewed{base: now, micros: now.UnixMicro() + offset.Microseconds(), rate: rate}
}

// off is by how much its clock is ahead of true time.
func (s *server) off() time.Duration {
	return time.Duration(s.clock.now()-time.Now().UnixMicro()) * time.Microsecond
}

func newServer(w *world, i int) *server {
	s := &server{w: w, index: i, addr: fmt.Sprintf("master-%d:6379", i+1), loaded: map[string]*scripts.Script{},
		subs: map[string][]*conn{}, ended: map[string]bool{}, relics: map[string]bool{}, forgot: time.Now().Add(-time.Hour)}
	s.env.Hears = func(channel string) int { return len(s.subs[channel]) }
	s.set(0, 1)
	s.renew(true, true)
	return s
}

// renew gives it another run id, as a restart does, or another replication id, as a change of role does.
func (s *server) renew(run, repl bool) {
	s.identity++
	id := fmt.Sprintf("%x%x", s.index+10, s.identity)
	if run {
		s.env.RunID = id
	}
	if repl {
		s.env.ReplID = id
	}
}

// admit writes that it may vote.
func (s *server) admit(guard time.Duration) {
	marker := scripts.Marker{Identity: s.env.Identity(), Guard: guard}
	s.state.Set(s.clock.now(), prefix.Marker(), marker.String(), 0)
}

// receive executes commands in the order of their arrival, or keeps them while it hangs.
func (s *server) receive(n *conn, commands []command) {
	if s.hung {
		n.upFlight++
		s.backlog = append(s.backlog, arrival{n, commands})
		return
	}
	for _, c := range commands {
		if !s.execute(n, c) {
			return
		}
	}
	n.flush()
}

// resume ends a hang: what has come meanwhile is executed, also where the client has gone since.
func (s *server) resume() {
	s.hung = false
	backlog := s.backlog
	s.backlog = nil
	for _, a := range backlog {
		a.n.upFlight--
		if !a.n.dead {
			s.receive(a.n, a.commands)
		}
		a.n.forget()
	}
}

// execute executes one command, adds its reply to what the connection sends next, and reports whether the connection is
// still there.
func (s *server) execute(n *conn, c command) bool {
	var reply any
	switch c[0] {
	case "EVALSHA", "EVAL":
		reply = s.script(n, c)
		if s.mute > 0 && reply != noScript {
			s.mute--
			n.cut(false)
			return false
		}
	case "INFO":
		reply = s.info()
	case "SCRIPT":
		reply = s.load(c[2])
	case "SUBSCRIBE", "UNSUBSCRIBE":
		s.channels(n, c)
		return true
	case "PING":
		reply = any("PONG")
		if len(n.channels) > 0 {
			reply = []any{"pong", ""}
		}
	default:
		reply = master.Error("ERR unknown command '" + c[0] + "'")
	}
	n.out = appendReply(n.out, reply)
	return true
}

const (
	noScript   master.Error = "NOSCRIPT No matching script. Please use EVAL."
	errReplica master.Error = "READONLY You can't write against a read only replica."
)

// load caches the script of this text and answers its SHA-1.
func (s *server) load(text string) any {
	for _, one := range scripts.All {
		if len(one.Text) == len(text) && one.Text == text {
			s.loaded[one.SHA] = one
			return one.SHA
		}
	}
	return master.Error("ERR the in-memory master runs the scripts of redlock and no others")
}

func (s *server) script(n *conn, c command) any {
	var one *scripts.Script
	if c[0] == "EVAL" {
		if sha, ok := s.load(c[1]).(string); ok {
			one = s.loaded[sha]
		}
	} else {
		one = s.loaded[c[1]]
	}
	if one == nil {
		return noScript
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil || len(c) < 3+keys {
		return master.Error("ERR value is not an integer or out of range")
	}
	reply := s.eval(one, c[3:3+keys], c[3+keys:])
	s.w.scripts++
	s.w.heard(n, s, one, c[3:3+keys], c[3+keys:], reply)
	return reply
}

func (s *server) eval(one *scripts.Script, keys, args []string) any {
	if s.refusal != "" {
		return master.Error(s.refusal)
	}
	now := s.clock.now()
	if s.replica {
		s.state.Keys(now) // what has expired is no difference
		trial := s.state.Clone()
		reply, _ := trial.Eval(now, s.env, one, keys, args)
		if trial.String() != s.state.String() {
			return errReplica
		}
		return reply
	}
	reply, out := s.state.Eval(now, s.env, one, keys, args)
	for _, m := range out {
		s.w.given(s, m)
		for _, to := range s.subs[m.Channel] {
			to.out = appendReply(to.out, []any{"message", m.Channel, m.Payload})
			to.flush()
		}
	}
	return reply
}

func (s *server) info() string {
	role := "master"
	if s.replica {
		role = "slave"
	}
	var b strings.Builder
	b.Grow(256)
	for _, part := range []string{"redis_version:7.0.15\r\nrun_id:", s.env.RunID, "\r\nserver_time_usec:",
		strconv.FormatInt(s.clock.now(), 10), "\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\nrole:", role,
		"\r\nmaster_replid:", s.env.ReplID, "\r\ncluster_enabled:0\r\n"} {
		b.WriteString(part)
	}
	return b.String()
}

// channels subscribes or unsubscribes, and queues a confirmation for each channel.
func (s *server) channels(n *conn, c command) {
	for _, ch := range c[1:] {
		if c[0] == "SUBSCRIBE" {
			n.channels = append(n.channels, ch)
			s.subs[ch] = append(s.subs[ch], n)
		} else {
			s.unsubscribe(n, ch)
			for i, o := range n.channels {
				if o == ch {
					n.channels = append(n.channels[:i:i], n.channels[i+1:]...)
					break
				}
			}
		}
		n.out = appendReply(n.out, []any{strings.ToLower(c[0]), ch, len(n.channels)})
	}
}

func (s *server) unsubscribe(n *conn, ch string) {
	for i, o := range s.subs[ch] {
		if o == n {
			s.subs[ch] = append(s.subs[ch][:i:i], s.subs[ch][i+1:]...)
			return
		}
	}
}

// holder is the hold that has a name here, "" where it is free or only kept for a waiter, and for how long yet.
func (s *server) holder(name string) (id string, left time.Duration) {
	now := s.clock.now()
	v := s.state.Look(now, prefix.Lock(name))
	if v.Type != master.Hash || scripts.IsReservation(v.Fields[0].Name) {
		return "", 0
	}
	return v.Fields[0].Name, time.Duration(s.state.TTL(now, prefix.Lock(name))) * time.Millisecond
}

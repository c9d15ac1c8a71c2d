package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// A server is one in-memory master. Package reference, which a test of package scripts compares with real servers,
// executes its scripts. Its fields are guarded by world.mu.
type server struct {
	w     *world
	index int
	addr  string

	state  reference.State
	env    reference.Env
	replID string // master_replid
	clock  skewed
	loaded map[string]*scripts.Script
	subs   map[string][]*conn
	ailment
	memory
	identity int // number of changes of the run id or the replication id
}

// An ailment holds the present faults of a server.
type ailment struct {
	down    bool
	hung    bool
	replica bool
	refusal string // error reply of every script, for example for lack of memory
	mute    int    // number of scripts that take effect without a reply
	backlog []arrival

	replicaSince time.Time
}

// A memory is the simulator's record of a server's data.
type memory struct {
	forgot time.Time        // last loss of data
	saved  *reference.State // last snapshot; nil if none
	relics map[string]bool  // grants restored from it
	no     map[string]bool  // grants whose acquire it has refused
	had    map[string]bool  // grants whose acquire it has granted
	ended  map[string]bool  // grants whose release it has executed since its last loss of data
}

// An arrival is a batch of commands received while the server hung.
type arrival struct {
	n        *conn
	commands []command
}

// skewed is a clock that showed micros at base and runs at rate.
type skewed struct {
	w      *world
	base   time.Time
	micros int64
	rate   float64
}

func (c skewed) now() int64 {
	return c.micros + int64(float64(c.w.since(c.base).Microseconds())*c.rate)
}

// set makes the clock differ by offset from true time now, and run at rate from then on.
func (s *server) set(offset time.Duration, rate float64) {
	now := s.w.now()
	s.clock = skewed{w: s.w, base: now, micros: now.UnixMicro() + offset.Microseconds(), rate: rate}
}

// off returns how far its clock is ahead of true time.
func (s *server) off() time.Duration {
	return time.Duration(s.clock.now()-s.w.now().UnixMicro()) * time.Microsecond
}

func newServer(w *world, i int) *server {
	s := &server{w: w, index: i, addr: addrOf(i), loaded: map[string]*scripts.Script{},
		subs: map[string][]*conn{}}
	s.memory = memory{forgot: w.now().Add(-time.Hour)}
	s.relics, s.no, s.had, s.ended = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.env.Publish, s.env.InfoFunc = s.publish, s.info
	s.set(0, 1)
	s.restart()
	return s
}

// another returns a hexadecimal number that no server had before.
func (s *server) another() string {
	s.identity++
	return fmt.Sprintf("%x%x", s.index+10, s.identity)
}

// restart gives the server a new run id. It has not been a replica since.
func (s *server) restart() {
	s.env.RunID, s.env.ReplID2, s.env.Offset = s.another(), "", 0
	s.replID = s.env.RunID
	s.lost(trace.Restart)
}

// promote makes a replica a master again. It gets a new replication id. The second one is that of its former master,
// usually always the same one, so that only the offset distinguishes two promotions.
func (s *server) promote() {
	s.replID = s.another()
	s.env.ReplID2, s.env.Offset = fmt.Sprintf("%040x", s.index+1), int64(s.identity)*100
	if s.w.random.IntN(4) == 0 {
		s.env.ReplID2 = strings.Repeat("0", 40-len(s.replID)) + s.replID
	}
	s.lost(trace.Restart)
}

// admit writes an admission record for a set of masters.
func (s *server) admit(set []int) {
	names := make([]string, len(set))
	for k, i := range set {
		names[k] = addrOf(i)
	}
	guard := s.w.plan.guard
	r := scripts.Record{
		Stamp: scripts.NewStamp(), Identity: s.env.Identity(), Masters: scripts.List(names), Longest: guard,
		Quarantine: max(guard, leastQuarantine), Admitted: true, Since: s.clock.now(),
	}
	s.state.Set(s.clock.now(), prefix.Admission(), r.String(), 0)
}

func addrOf(i int) string { return fmt.Sprintf("master-%d:6379", i+1) }

// publish delivers a message, and returns the number of connections that got it.
func (s *server) publish(channel, payload string) int {
	h, ok := prefix.ParseWakeUp(payload)
	s.w.seen.reach(recalled, ok && h.Lease != "" && len(s.subs[channel]) > 0)
	for _, to := range s.subs[channel] {
		to.out = appendReply(to.out, []any{"message", channel, payload})
		to.flush()
	}
	return len(s.subs[channel])
}

// receive executes commands in the order of their arrival, or stores them while the server hangs.
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

// hang stops execution for d.
func (s *server) hang(d time.Duration) {
	s.w.note(-1, s.index, "hangs for", "", int64(d))
	s.hung = true
	s.w.ending(d, s.resume)
}

// resume ends a hang: commands received meanwhile are executed, even if the client has disconnected.
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

// execute executes one command, adds its reply to the output of the connection, and reports whether the connection is
// still open.
func (s *server) execute(n *conn, c command) bool {
	var reply any
	switch c[0] {
	case "EVALSHA", "EVAL":
		reply = s.script(n, c)
		if s.mute > 0 && reply != noScript && c[1] != scripts.Heartbeat.SHA {
			s.mute--
			n.cut(false)
			return false
		}
	case "INFO":
		reply = s.info()
	case "CONFIG":
		reply = []any{c[2], "3600"} // repl-backlog-ttl, the only one that is requested
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
		reply = reference.Error("ERR unknown command '" + c[0] + "'")
	}
	n.out = appendReply(n.out, reply)
	return true
}

const (
	noScript   reference.Error = "NOSCRIPT No matching script. Please use EVAL."
	errDenied  reference.Error = "NOPERM this user has no permissions to access one of the keys used as arguments"
	errReplica reference.Error = "READONLY You can't write against a read only replica."
)

// load caches the script with this text and returns its SHA-1.
func (s *server) load(text string) any {
	for _, one := range scripts.All {
		if len(one.Text) == len(text) && one.Text == text {
			s.loaded[one.SHA] = one
			return one.SHA
		}
	}
	return reference.Error("ERR the in-memory master runs the scripts of redlock and no others")
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
	keys, err := strconv.Atoi(c[2])
	if err != nil || len(c) < 3+keys {
		return reference.Error("ERR value is not an integer or out of range")
	}
	if one == nil {
		// An acquire is refused, and granted only if it is executed once more.
		if c[1] == scripts.Acquire.SHA || c[1] == scripts.SharedAcquire.SHA {
			s.no[c[3+keys+wordID]] = true
		}
		return noScript
	}
	if one == scripts.Heartbeat {
		return s.eval(one, nil, c[3:])
	}
	var reply any = errDenied
	if !n.l.denied || one != scripts.Acquire && one != scripts.SharedAcquire {
		reply = s.eval(one, c[3:3+keys], c[3+keys:])
	}
	s.w.count.Scripts++
	m := read(one, c[3+keys:], reply)
	s.executed(n, c[3:3+keys], m)
	s.w.heard(n, s, m)
	return reply
}

func (s *server) eval(one *scripts.Script, keys, args []string) any {
	if s.refusal != "" {
		return reference.Error(s.refusal)
	}
	now := s.clock.now()
	if !s.replica {
		return s.state.Eval(now, s.env, one, keys, args)
	}
	// A replica stops a script at its first write. Expired keys do not count as written.
	s.state.Keys(now) // drop expired keys
	trial, env := s.state.Clone(), s.env
	env.Publish = func(channel, _ string) int { return len(s.subs[channel]) }
	reply := trial.Eval(now, env, one, keys, args)
	if trial.String() != s.state.String() {
		return errReplica
	}
	return reply
}

func (s *server) info() string {
	role := "master"
	if s.replica {
		role = "slave"
	}
	_, second, _ := strings.Cut(s.env.Identity(), "/")
	replID2, offset, _ := strings.Cut(second, "/")
	var b strings.Builder
	b.Grow(256)
	for _, part := range []string{"redis_version:7.0.15\r\nrun_id:", s.env.RunID, "\r\nserver_time_usec:",
		strconv.FormatInt(s.clock.now(), 10), "\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\nrole:", role,
		"\r\nmaster_replid:", s.replID,
		"\r\nmaster_replid2:", replID2, "\r\nsecond_repl_offset:", offset, "\r\ncluster_enabled:0\r\n"} {
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

// holder returns the grant of a name on this server, "" if it is free, and its remaining TTL.
func (s *server) holder(name string) (id string, left time.Duration) {
	now := s.clock.now()
	if v := s.state.Look(now, prefix.Lock(name)); v.Type == reference.SortedSet {
		shares := s.state.Shares(now, prefix.Lock(name))
		if len(shares) == 0 {
			return "", 0
		}
		last := shares[len(shares)-1]
		return last.Name, time.Duration(number(last.Value)-now) * time.Microsecond
	}
	for _, f := range s.state.Look(now, prefix.Lock(name)).Fields {
		id = f.Name
	}
	return id, max(0, time.Duration(s.state.TTL(now, prefix.Lock(name)))*time.Millisecond)
}

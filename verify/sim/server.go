package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// A server is one in-memory master, as in package memory, with the simulator's network and clock. Its fields are
// guarded by simulation.mu.
type server struct {
	w     *simulation
	index int
	addr  string

	*memory.Server
	clock skewed
	ailment
	past
	wrong wrongClock
	recording
	identity int // number of changes of the run id or the replication id
}

// The ailment of a server is the set of its current faults.
type ailment struct {
	down    bool
	hung    bool
	mute    int // number of scripts that take effect without a reply
	backlog []arrival
	fileOff bool // the append-only file lacks writes

	replicaSince time.Time
}

// A past is the simulator's record of a server's data.
type past struct {
	forgot time.Time        // when the server last lost data
	saved  *reference.State // last snapshot; nil if none
	relics map[string]bool  // leases restored from the snapshot
	no     map[string]bool  // leases whose acquire the server has refused
	had    map[string]bool  // leases whose acquire the server has granted
	ended  map[string]bool  // leases whose release the server has executed since its last loss of data
}

// An arrival is a batch of commands received while the server hung.
type arrival struct {
	n        *conn
	commands []command
}

// skewed is a clock that showed micros, in microseconds since 1970, at the time base, and has advanced by rate seconds
// per second of true time since then.
type skewed struct {
	w      *simulation
	base   time.Time
	micros int64
	rate   float64
}

func (c skewed) now() int64 {
	return c.micros + int64(float64(c.w.since(c.base).Microseconds())*c.rate)
}

// set sets the clock of s to true time plus offset, and makes it run at rate from now on.
func (s *server) set(offset time.Duration, rate float64) {
	now := s.w.now()
	s.clock = skewed{w: s.w, base: now, micros: now.UnixMicro() + offset.Microseconds(), rate: rate}
}

// off returns how far the clock of s is ahead of true time.
func (s *server) off() time.Duration {
	return time.Duration(s.clock.now()-s.w.now().UnixMicro()) * time.Microsecond
}

func newServer(w *simulation, i int) *server {
	s := &server{w: w, index: i, addr: addrOf(i)}
	s.Server = memory.NewServer(func() int64 { return s.clock.now() })
	s.past = past{forgot: w.now().Add(-time.Hour)}
	s.relics, s.no, s.had, s.ended = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.read = map[int]readings{}
	s.set(0, 1)
	s.restart()
	return s
}

// another returns a hexadecimal number that no earlier call has returned, for any server.
func (s *server) another() string {
	s.identity++
	return fmt.Sprintf("%x%x", s.index+10, s.identity)
}

// restart gives the server a new run id, as if its process had restarted as a master.
func (s *server) restart() {
	s.Env.RunID, s.Env.ReplID2, s.Env.Offset = s.another(), "", 0
	s.excused = true
	s.ReplID = s.Env.RunID
	s.lost(trace.Restart)
}

// promote makes a replica a master again, with a new replication id. The second replication id is the id of the former
// master. Usually this id is the same in each promotion, so only the offset distinguishes two promotions.
func (s *server) promote() {
	s.ReplID = s.another()
	s.Env.ReplID2, s.Env.Offset = fmt.Sprintf("%040x", s.index+1), int64(s.identity)*100
	if s.w.random.IntN(4) == 0 {
		s.Env.ReplID2 = strings.Repeat("0", 40-len(s.ReplID)) + s.ReplID
	}
	s.lost(trace.Restart)
}

// admit writes an admission record for a set of masters to the server.
func (s *server) admit(set []int) {
	names := make([]string, len(set))
	for k, i := range set {
		names[k] = addrOf(i)
	}
	guard := s.w.plan.guard
	r := scripts.Record{
		Stamp: scripts.NewStamp(), Identity: s.Env.Identity(), Masters: scripts.List(names), MaxTTL: guard,
		Quarantine: max(guard, leastQuarantine), Admitted: true, Since: s.clock.now(),
	}
	s.State.Set(s.clock.now(), prefix.Admission(), r.String(), 0)
	s.excused = false
}

func addrOf(i int) string { return fmt.Sprintf("master-%d:6379", i+1) }

// message sends a message of a subscribed channel to a connection.
func (s *server) message(n *conn, reply any) {
	m := reply.([]any)
	h, ok := prefix.ParseWakeUp(m[2].(string))
	s.w.seen.reach(recalled, ok && h.Lease != "" && !h.Release)
	s.w.seen.reach(releaseRequested, ok && h.Release)
	n.out = memory.AppendReply(n.out, reply)
	n.flush()
}

// receive executes commands in the order of their arrival, or stores them if the server hangs.
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

// hang makes the server hang for d: it executes no commands.
func (s *server) hang(d time.Duration) {
	s.w.note(-1, s.index, "hangs for", "", int64(d))
	s.hung = true
	s.w.ending(d, s.resume)
}

// resume ends a hang. It executes the commands that were received during the hang, even if the client has disconnected.
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
	if !memory.IsScript(c[0]) {
		s.Execute(&n.client, c)
		return true
	}
	reply := s.script(n, c)
	if s.mute > 0 && reply != memory.NoScript && c[1] != heartbeat.Script.SHA {
		s.mute--
		n.cut(false)
		return false
	}
	n.out = memory.AppendReply(n.out, reply)
	return true
}

const errDenied reference.Error = "NOPERM this user has no permissions to access one of the keys used as arguments"

func (s *server) script(n *conn, c command) any {
	one, keys, args, failed := s.Find(c)
	if one == nil {
		// The script is not loaded, so the acquire is refused; only a duplicate of it can be granted.
		if acquires(c[1]) {
			s.no[c[3+int(number(c[2]))+wordID]] = true
		}
		return failed
	}
	if one == heartbeat.Script {
		if s.wrong.by != 0 {
			s.wrong.beats[n.l.c]++
		}
		return s.Eval(one, keys, args)
	}
	var reply any = errDenied
	if s.w.beforeScript(s, one, args) {
		reply = errFull
	} else if !n.l.denied || !acquires(one.SHA) {
		reply = s.Eval(one, keys, args)
	}
	s.w.count.Scripts++
	m := read(one, args, reply)
	s.executed(n, keys, m)
	s.w.heard(n, s, m)
	s.w.afterScript(s, n, keys, &m)
	s.w.sawRecord(n, s, &m)
	s.w.sawDurable(s, &m)
	return reply
}

// holder returns the lease of a name on this server and its remaining TTL. The lease is "" if the name is free.
func (s *server) holder(name string) (id string, left time.Duration) {
	now := s.clock.now()
	if shares := s.State.Shares(now, prefix.Shares(name)); len(shares) > 0 {
		last := shares[len(shares)-1]
		return last.Name, time.Duration(number(last.Value)-now) * time.Microsecond
	}
	id, _, ms := s.State.Lease(now, prefix.Lock(name))
	return id, time.Duration(ms) * time.Millisecond
}

package redlocktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A Master is one in-memory master.
type Master struct {
	set  *Masters
	addr string

	mu sync.Mutex // guards what follows; held while a command is executed, never while anything waits

	state  *reference.State
	server server
	clock  skewed
	loaded map[string]*scripts.Script // by SHA
	subs   map[string]map[*conn]struct{}
	conns  map[*conn]struct{}
	counts map[string]int
	faults faults
	closed bool
}

// A server is what a master says of itself.
type server struct {
	env     reference.Env
	replID  string
	started time.Time
	role    string
	policy  string
	limit   int64             // maxmemory
	config  map[string]string // what CONFIG GET answers
}

// faults are those that were ordered.
type faults struct {
	delay    func() time.Duration
	refusal  string
	noReply  int
	noEffect int
	work     time.Duration // that a script takes
	busy     time.Time     // until when earlier scripts take the master
	hung     chan struct{} // not nil while the master hangs; closed by Resume
	down     bool
}

func newMaster(set *Masters, i int) *Master {
	now := time.Now()
	return &Master{
		set: set, addr: fmt.Sprintf("master-%d:6379", i+1),
		state: new(reference.State),
		server: server{
			env: reference.Env{RunID: hexID()}, replID: hexID(), started: now, role: "master", policy: "noeviction",
			config: map[string]string{"repl-backlog-ttl": "3600", "appendonly": "no"},
		},
		clock:  skewed{base: now, micros: now.UnixMicro(), rate: 1},
		loaded: map[string]*scripts.Script{}, subs: map[string]map[*conn]struct{}{},
		conns: map[*conn]struct{}{}, counts: map[string]int{},
		faults: faults{delay: func() time.Duration { return 0 }},
	}
}

func hexID() string {
	return fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())
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

// Addr returns the host and port by which pools know this master.
func (m *Master) Addr() string { return m.addr }

// Delay makes each message take d on its way to the master, and each reply d on its way back. 0, the default, is none.
// Messages already on their way keep their delay.
func (m *Master) Delay(d time.Duration) { m.DelayFunc(func() time.Duration { return d }) }

// DelayFunc lets f say how long each message and each reply takes; on one connection nothing overtakes. f may be
// called by several goroutines at once and must neither block nor call a method of this package.
func (m *Master) DelayFunc(f func() time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.delay = f
}

// ScriptTime makes each script take d of the master's time: it executes one after the other, whatever the connection.
// 0, the default, is none.
func (m *Master) ScriptTime(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.work = d
}

// Hang makes the master execute nothing and answer nothing while its connections stay. What is sent to it waits, even
// when its sender has closed the connection since, and is executed at Resume; the clock runs on meanwhile.
func (m *Master) Hang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.hung == nil {
		m.faults.hung = make(chan struct{})
	}
}

// Resume ends a Hang. It does nothing where the master does not hang.
func (m *Master) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumeLocked()
}

func (m *Master) resumeLocked() {
	if m.faults.hung != nil {
		close(m.faults.hung)
		m.faults.hung = nil
	}
}

// CutConnections ends every connection as a broken network does: what is on its way, in either direction, is lost. New
// ones can be made at once.
func (m *Master) CutConnections() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cutLocked()
}

func (m *Master) cutLocked() {
	for c := range m.conns {
		c.cutLocked()
	}
}

// Stop ends every connection and refuses new ones until Restart.
func (m *Master) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.down = true
	m.cutLocked()
}

// Restart is a crash and a new start: connections are cut, cached scripts and subscriptions are gone, the run id is a
// new one, and the keys are gone too unless keepMemory says that they had been written to disk. A Hang ends. Either
// way the admission is over: a Locker puts the master through a quarantine before it votes, unless Admit is called.
func (m *Master) Restart(keepMemory bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.down = false
	m.cutLocked()
	m.resumeLocked()
	clear(m.loaded)
	m.server.env, m.server.replID = reference.Env{RunID: hexID()}, hexID()
	m.server.started = time.Now()
	if !keepMemory {
		m.state.Flush()
	}
}

// Refuse makes every script answer with this error, such as "OOM command not allowed when used memory > 'maxmemory'.",
// and do nothing. "" ends it.
func (m *Master) Refuse(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.refusal = text
}

// DropReplies lets the next n scripts take effect, loses each one's reply, and cuts its connection.
func (m *Master) DropReplies(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.noReply = n
}

// DropRequests loses the next n scripts without an effect and cuts the connection of each.
func (m *Master) DropRequests(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.noEffect = n
}

// SetClock makes the master's clock differ by offset from time.Now at this moment, and from then on gain rate seconds
// in each second; 1 is a true rate. The default is SetClock(0, 1).
func (m *Master) SetClock(offset time.Duration, rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.clock = skewed{base: now, micros: now.UnixMicro() + offset.Microseconds(), rate: rate}
}

// Time returns what the master's clock shows.
func (m *Master) Time() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.UnixMicro(m.clock.now())
}

// SetRole makes the master a replica ("slave") or again a master ("master"), which INFO tells by master_replid2 and
// second_repl_offset. Run id, connections and keys stay as they are; Flush does what a replica's first synchronisation
// does. A replica's scripts that would write answer READONLY.
func (m *Master) SetRole(role string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch role {
	case m.server.role:
		return
	case "master": // promoted: it remembers the id of what it has followed
		m.server.env.ReplID2, m.server.env.Offset = m.server.replID, 1
	default:
		m.server.env.ReplID2, m.server.env.Offset = "", 0
	}
	m.server.role, m.server.replID = role, hexID()
}

// SetConfig sets what CONFIG GET answers for one name, in lower case. It changes nothing else. The defaults are those
// of a Redis: repl-backlog-ttl 3600, appendonly no; other names are not known.
func (m *Master) SetConfig(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.config[name] = value
}

// SetPolicy sets what INFO says of maxmemory-policy and maxmemory, in bytes. Nothing is ever evicted by itself; see
// Evict. The default is "noeviction" and 0.
func (m *Master) SetPolicy(policy string, maxMemory int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.policy, m.server.limit = policy, maxMemory
}

// Flush deletes every key, the master's admission among them.
func (m *Master) Flush() { m.change(func(_ int64, s *reference.State) { s.Flush() }) }

// Evict deletes the lock of name, as an eviction would, and reports whether it was there.
func (m *Master) Evict(name string) bool { return m.EvictKey(m.set.prefix.Lock(name)) }

// EvictKey deletes any key and reports whether it was there.
func (m *Master) EvictKey(key string) (there bool) {
	m.change(func(now int64, s *reference.State) { there = s.Delete(now, key) })
	return there
}

// shortestQuarantine is what a record has at least, whatever the guard time.
const shortestQuarantine = 30 * time.Second

// Admit writes that this master, as it now is, may vote; see [Masters.Admit].
func (m *Master) Admit(prefix string, guard time.Duration) {
	m.set.mu.Lock()
	names := m.set.names
	m.set.mu.Unlock()
	m.change(func(now int64, s *reference.State) {
		record := scripts.Record{
			Stamp: scripts.NewStamp(), Identity: m.server.env.Identity(), Group: m.set.group, Masters: names, Longest: guard,
			Quarantine: max(guard, shortestQuarantine), Admitted: true, Since: now,
		}
		s.Set(now, scripts.Prefix(prefix).Admission(), record.String(), 0)
	})
}

// rename writes another list of masters into the admission record, if there is one.
func (m *Master) rename(names string) {
	m.change(func(now int64, s *reference.State) {
		key := m.set.prefix.Admission()
		text, _ := s.Get(now, key)
		if r, err := scripts.ParseRecord(text); err == nil {
			r.Stamp, r.Masters = scripts.NewStamp(), names
			s.Set(now, key, r.String(), 0)
		}
	})
}

// Holds returns who holds name on this master, how deep, and for how long yet; "" and zeros where it is free. Of
// readers it names the one whose share ends last; depth is how many they are.
func (m *Master) Holds(name string) (id string, depth int, left time.Duration) {
	m.change(func(now int64, s *reference.State) {
		lock := m.set.prefix.Lock(name)
		for field, value := range s.Hash(now, lock) {
			id, left = field, time.Duration(s.TTL(now, lock))*time.Millisecond
			first, _, _ := strings.Cut(value, " ")
			depth, _ = strconv.Atoi(first)
		}
		for _, share := range s.Shares(now, lock) {
			ends, _ := strconv.ParseInt(share.Value, 10, 64)
			id, left = share.Name, time.Duration(ends-now)*time.Microsecond
			depth++
		}
	})
	return id, depth, left
}

// Keys returns the keys that the master has, sorted.
func (m *Master) Keys() (keys []string) {
	m.change(func(now int64, s *reference.State) { keys = s.Keys(now) })
	return keys
}

// Get returns the text of a string key, and whether there is such a key.
func (m *Master) Get(key string) (text string, ok bool) {
	m.change(func(now int64, s *reference.State) { text, ok = s.Get(now, key) })
	return text, ok
}

// Set writes a string key that does not expire.
func (m *Master) Set(key, text string) {
	m.change(func(now int64, s *reference.State) { s.Set(now, key, text, 0) })
}

// Commands returns how often each command was executed since the master was made: scripts by their names in lower
// case, such as "acquire", "extend" and "release", others in upper case, such as "INFO".
func (m *Master) Commands() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

// Connections returns how many clients are connected.
func (m *Master) Connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}

// change calls f with the lock held.
func (m *Master) change(f func(now int64, s *reference.State)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.clock.now(), m.state)
}

// free runs the release of whatever holds name, as its holder would send it, and of nobody where nothing does.
func (m *Master) free(name string) {
	id, _, _ := m.Holds(name)
	role, _ := scripts.ShareOf(id)
	keys := m.set.prefix.KeysOf(name, role)
	call := scripts.NewEncoder(m.set.prefix, 0).Release(&keys, scripts.Ending{Grants: []string{id}})
	scriptKeys, argv := call.Arguments("")
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.state.Look(m.clock.now(), keys.Lock()); v.Type != reference.Hash && role == scripts.Plain {
		m.state.Delete(m.clock.now(), keys.Lock())
	}
	env := m.server.env
	env.Publish = m.publishLocked
	m.state.Eval(m.clock.now(), env, call.Script, scriptKeys, argv)
}

// publishLocked sends a message to the subscribers and returns how many they are.
func (m *Master) publishLocked(channel, payload string) int {
	for c := range m.subs[channel] {
		c.answerLocked([]any{"message", channel, payload})
	}
	return len(m.subs[channel])
}

func (m *Master) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if m.serve(nc) != nil {
			_ = nc.Close()
		}
	}
}

func (m *Master) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.cutLocked()
	m.resumeLocked()
}

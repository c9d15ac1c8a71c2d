package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A Master is one in-memory master.
type Master struct {
	set  *Masters
	addr string

	mu sync.Mutex // guards the fields below; held while a command is executed, never while waiting

	server *Server
	clock  skewed
	conns  map[*conn]struct{}
	counts map[string]int
	faults faults
	closed bool
}

// faults are the injected faults.
type faults struct {
	delay    time.Duration
	noReply  int           // number of scripts still to be executed without a reply
	noEffect int           // number of scripts still to be dropped
	work     time.Duration // execution time of a script
	busy     time.Time     // end of the last script that was started
	hung     chan struct{} // not nil while the master hangs; closed by Resume
	down     bool
}

func newMaster(set *Masters, i int) *Master {
	now := time.Now()
	m := &Master{
		set: set, addr: fmt.Sprintf("master-%d:6379", i+1),
		clock: skewed{base: now, micros: now.UnixMicro(), rate: 1},
		conns: map[*conn]struct{}{}, counts: map[string]int{},
	}
	m.server = NewServer(func() int64 { return m.clock.now() })
	m.server.Env.RunID, m.server.ReplID = hexID(), hexID()
	return m
}

func hexID() string {
	return fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())
}

// skewed is a clock that showed micros, in microseconds since 1970, at the time base, and has advanced by rate seconds
// per second since then.
type skewed struct {
	base   time.Time
	micros int64
	rate   float64
}

func (c skewed) now() int64 {
	return c.micros + int64(float64(time.Since(c.base).Microseconds())*c.rate)
}

// Addr returns the host and port of this master in [Masters.URLs].
func (m *Master) Addr() string { return m.addr }

// Delay delays each message to the master by d, and each reply by d. The default 0 is no delay. Messages already in
// flight keep their delay.
func (m *Master) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.delay = d
}

// ScriptTime sets the execution time of each script to d. The scripts of all connections run one after the other. The
// default is 0.
func (m *Master) ScriptTime(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.work = d
}

// Hang stops execution and replies while connections stay open. Commands that arrive wait until Resume and are then
// executed, even if the sender has closed the connection. The clock continues.
func (m *Master) Hang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.hung == nil {
		m.faults.hung = make(chan struct{})
	}
}

// Resume ends a Hang. It does nothing if the master does not hang.
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

// CutConnections ends every connection like a broken network: data in flight, in either direction, is lost. New
// connections can be made immediately.
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

// Restart simulates a crash and a new start: connections are cut, cached scripts and subscriptions are lost, and the
// run id changes. The keys are lost too, unless keepMemory is set, as if they had been written to disk. Restart also
// ends a Hang or a Stop. With or without the keys, the master is no longer admitted: a Locker keeps the master in
// quarantine before the master votes, unless Admit is called.
func (m *Master) Restart(keepMemory bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.down = false
	m.cutLocked()
	m.resumeLocked()
	clear(m.server.Loaded)
	m.server.Env, m.server.ReplID = reference.Env{RunID: hexID()}, hexID()
	m.server.started = time.Now()
	m.server.Reload()
	if !keepMemory {
		m.server.State.Flush()
	}
}

// SetAppendOnly switches the append-only file off ("no"), on again ("rewriting"), which begins to rewrite the file, or
// completes the file ("yes"). Until the file is complete, Restart(true) restores the data of the moment at which the
// file was switched off; the file is on afterwards.
func (m *Master) SetAppendOnly(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.SetAppendOnly(state)
}

// Refuse makes every script fail with the error text, such as "OOM command not allowed when used memory >
// 'maxmemory'.", without an effect. After Refuse("") scripts are executed again.
func (m *Master) Refuse(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Refusal = text
}

// RefuseCommand makes a command other than a script, such as "INFO" or "SCRIPT LOAD", fail with the error text. After
// RefuseCommand(command, "") it is executed again.
func (m *Master) RefuseCommand(command, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Refused[command] = text
}

// DropReplies makes the master execute each of the next n scripts, drop its reply, and cut its connection.
func (m *Master) DropReplies(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.noReply = n
}

// DropRequests makes the master drop each of the next n scripts without an effect, and cut its connection.
func (m *Master) DropRequests(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.noEffect = n
}

// SetClock sets the master's clock to time.Now plus offset. From then on the clock advances by rate seconds per second;
// a rate of 1 is correct. The default is SetClock(0, 1).
func (m *Master) SetClock(offset time.Duration, rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.clock = skewed{base: now, micros: now.UnixMicro() + offset.Microseconds(), rate: rate}
}

// Time returns the time of the master's clock.
func (m *Master) Time() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.UnixMicro(m.clock.now())
}

// SetRole makes the master a replica ("slave") or a master again ("master"), which changes master_replid2 and
// second_repl_offset in INFO. Run id, connections and keys do not change; Flush simulates the first synchronization of
// a replica. Scripts that would write fail with READONLY on a replica.
func (m *Master) SetRole(role string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	replica := role != "master"
	switch {
	case replica == m.server.Replica:
		return
	case !replica: // a promoted server keeps the id of its former master
		m.server.Env.ReplID2, m.server.Env.Offset = m.server.ReplID, 1
	default:
		m.server.Env.ReplID2, m.server.Env.Offset = "", 0
	}
	m.server.Replica, m.server.ReplID = replica, hexID()
}

// SetConfig sets the value that CONFIG GET returns for name, which must be in lower case. It has no other effect. The
// defaults are repl-backlog-ttl 3600, and the settings of a durable master. Other names are unknown until they are set.
func (m *Master) SetConfig(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.config[name] = value
}

// Flush deletes every key, including the master's admission record.
func (m *Master) Flush() { m.change(func(_ int64, s *reference.State) { s.Flush() }) }

// Evict deletes the leases of name and, of a semaphore, those of all slots. It reports whether there was one. The
// fences stay.
func (m *Master) Evict(name string) bool {
	there := m.EvictKey(m.set.prefix.Shares(name))
	m.change(func(now int64, s *reference.State) {
		for _, key := range s.Keys(now) {
			full, _ := m.set.prefix.NameOf(key)
			if semaphore, _ := scripts.CutSlot(full); full == name || semaphore == name {
				there = s.DeleteLeases(now, key) || there
			}
		}
	})
	return there
}

// EvictKey deletes key and reports whether it existed.
func (m *Master) EvictKey(key string) (there bool) {
	m.change(func(now int64, s *reference.State) { there = s.Delete(now, key) })
	return there
}

// Expire gives a key a TTL.
func (m *Master) Expire(key string, ttl time.Duration) {
	m.change(func(now int64, s *reference.State) { s.Expire(now, key, ttl.Milliseconds()) })
}

// TTL returns what PTTL returns for key.
func (m *Master) TTL(key string) (ms int64) {
	m.change(func(now int64, s *reference.State) { ms = s.TTL(now, key) })
	return ms
}

// shortestQuarantine is the minimum quarantine in an admission record, however short the max TTL is.
const shortestQuarantine = 30 * time.Second

// Admit writes an admission record for the current incarnation of this master, at epoch 0, so that the master votes for
// Lockers with this prefix and max TTL.
func (m *Master) Admit(prefix string, maxTTL time.Duration) {
	m.set.mu.Lock()
	names := m.set.names
	m.set.mu.Unlock()
	m.change(func(now int64, s *reference.State) {
		record := scripts.Record{
			Stamp: scripts.NewStamp(), Identity: m.server.Env.Identity(), Shard: m.set.shard, Masters: names, MaxTTL: maxTTL,
			Quarantine: max(maxTTL, shortestQuarantine), Admitted: true, Since: now,
		}
		s.Set(now, scripts.Prefix(prefix).Admission(), record.String(), 0)
	})
}

// Readmit admits the master with the prefix and the max TTL given to New.
func (m *Master) Readmit() { m.Admit(string(m.set.prefix), m.set.maxTTL) }

// rename replaces the list of masters in the admission record, if there is one.
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

// Holds returns the id of the lease that holds name on this master, the depth of re-entry, and the remaining TTL; it
// returns "" and zeros if the name is free. If readers hold the name, id is the lease id of the reader whose share
// expires last, and depth is the number of readers.
func (m *Master) Holds(name string) (id string, depth int, left time.Duration) {
	m.change(func(now int64, s *reference.State) {
		var text string
		var ms int64
		if id, text, ms = s.Lease(now, m.set.prefix.Lock(name)); id != "" {
			left = time.Duration(ms) * time.Millisecond
			_, _ = fmt.Sscanf(text, "%d", &depth)
		}
		for _, share := range s.Shares(now, m.set.prefix.Shares(name)) {
			ends, _ := strconv.ParseInt(share.Value, 10, 64)
			id, left = share.Name, time.Duration(ends-now)*time.Microsecond
			depth++
		}
	})
	return id, depth, left
}

// Fence returns the fence of name, or "" if the master has none.
func (m *Master) Fence(name string) (fence string) { return m.field(name, scripts.FieldFence) }

// ReadersFence returns the readers' fence of name, or "" if the master has none.
func (m *Master) ReadersFence(name string) (fence string) { return m.field(name, scripts.FieldReads) }

// Kind returns the kind of name, as the scripts write it: "" for plain locks, and if the master does not know the name.
func (m *Master) Kind(name string) string { return m.field(name, scripts.FieldKind) }

func (m *Master) field(name, field string) (text string) {
	m.change(func(now int64, s *reference.State) { text = s.Hash(now, m.set.prefix.Lock(name))[field] })
	return text
}

// SetFence sets the fence of name.
func (m *Master) SetFence(name, fence string) {
	m.change(func(now int64, s *reference.State) {
		s.SetField(now, m.set.prefix.Lock(name), scripts.FieldFence, fence)
	})
}

// Keys returns the keys of the master, sorted.
func (m *Master) Keys() (keys []string) {
	m.change(func(now int64, s *reference.State) { keys = s.Keys(now) })
	return keys
}

// Get returns the text of a string key, and whether the key exists.
func (m *Master) Get(key string) (text string, ok bool) {
	m.change(func(now int64, s *reference.State) { text, ok = s.Get(now, key) })
	return text, ok
}

// Set writes a string key without expiry.
func (m *Master) Set(key, text string) {
	m.change(func(now int64, s *reference.State) { s.Set(now, key, text, 0) })
}

// Commands returns the number of executions of each command since the master was created. The keys are the names of
// scripts in lower case, such as "acquire", "extend" and "release", and other commands in upper case, such as "INFO".
func (m *Master) Commands() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

// Connections returns the number of connected clients.
func (m *Master) Connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}

// change calls f with the master's time and keyspace while it holds m.mu.
func (m *Master) change(f func(now int64, s *reference.State)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.clock.now(), m.server.State)
}

// free runs the release script for the current holder of name, or with an empty lease id if the name is free.
func (m *Master) free(name string) {
	id, _, _ := m.Holds(name)
	role, _ := scripts.ShareOf(id)
	keys := m.set.prefix.KeysOf(name, role)
	call := scripts.NewEncoder(m.set.prefix, 0).Release(&keys, scripts.Ending{Leases: []string{id}})
	scriptKeys, argv := call.Arguments("")
	m.mu.Lock()
	defer m.mu.Unlock()
	env := m.server.Env
	env.Publish = m.server.Publish
	m.server.State.Eval(m.clock.now(), env, call.Script, scriptKeys, argv)
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

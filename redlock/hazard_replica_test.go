package redlock_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A watched is a deployment whose masters all vote, with a Locker that soon detects changes of them.
type watched struct {
	*deployment
	locker *redlock.Locker
	pool   *pool.Pool
	spare  *redisproc.Server // a server that is no master of the deployment

	mu    sync.Mutex
	left  []string // states other than voting that masters entered since watch
	on    bool
	beats []int // heartbeats of each master
	moved chan struct{}
}

// newWatched returns a watched with n masters. prepare, if not nil, is called before they are admitted. The max TTL is
// so short that no server setting is too short for it.
func newWatched(t testing.TB, n int, prepare func(w *watched)) *watched {
	t.Helper()
	args := []string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "3600"}
	w := &watched{deployment: newDeployment(t, n, args...), beats: make([]int, n), moved: make(chan struct{}, 1)}
	w.spare = redistest.Test(t, 1, redisproc.Config{Args: args})[0]
	if prepare != nil {
		prepare(w)
	}
	w.pool = w.dial(pool.WithHeartbeat(quick))
	trace := redlock.On("master", func(m redlockinfo.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.on && m.State != "voting" {
			w.left = append(w.left, fmt.Sprintf("%s is %q (%v)", m.Master, m.State, m.Err))
		}
	})
	short := []redlock.Option{redlock.WithMaxTTL(time.Second), redlock.WithTTL(time.Second)}
	w.locker = locker(t, w.pool, append(short, redlock.WithTrace(trace))...)
	w.admit(w.locker)
	for i := range n {
		stateOf(t, w.locker, i, "voting")
	}
	t.Cleanup(w.pool.Transport().Watch(func(e transport.Event) {
		w.mu.Lock()
		w.beats[e.Master]++
		w.mu.Unlock()
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}))
	w.mu.Lock()
	w.on = true
	w.mu.Unlock()
	return w
}

// heard waits until each master has answered several more heartbeats.
func (w *watched) heard() {
	w.t.Helper()
	w.mu.Lock()
	clear(w.beats)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for {
		w.mu.Lock()
		least := 5
		for _, n := range w.beats {
			least = min(least, n)
		}
		w.mu.Unlock()
		if least == 5 {
			return
		}
		select {
		case <-w.moved:
		case <-ctx.Done():
			w.t.Fatal("no heartbeats")
		}
	}
}

// votesOn checks that no master has stopped voting, and that a name can be locked.
func (w *watched) votesOn(t testing.TB) {
	t.Helper()
	w.heard()
	w.mu.Lock()
	left := w.left
	w.mu.Unlock()
	if len(left) > 0 {
		t.Errorf("masters without data loss stopped voting: %s", strings.Join(left, "; "))
	}
	if lock, err := w.locker.TryLock(bounded(t), "n"); err != nil {
		t.Errorf("no lock: %v", err)
	} else {
		_ = lock.Unlock(bounded(t))
	}
}

// backUp acts like redis-cli --rdb: it requests all data of master i, as a replica would, and disconnects.
func (w *watched) backUp(i int) {
	w.t.Helper()
	c, err := net.Dial("unix", w.servers[i].Unix())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hang))
	r := bufio.NewReader(c)
	for _, step := range []struct{ command, answer string }{
		{"REPLCONF capa eof", "+OK"}, {"REPLCONF rdb-only 1", "+OK"}, {"SYNC", "$"}, // the data follow
	} {
		if _, err := fmt.Fprintf(c, "%s\r\n", step.command); err != nil {
			w.t.Fatal(err)
		}
		for line := "\n"; !strings.HasPrefix(line, step.answer); { // empty lines are keepalives
			if line, err = r.ReadString('\n'); err != nil || strings.HasPrefix(line, "-") {
				w.t.Fatalf("%s: %s%v", step.command, line, err)
			}
		}
	}
}

// follow makes one server a replica of another, by any connection to it, and waits until it has its data.
func (w *watched) follow(unix string, of *redisproc.Server) {
	w.t.Helper()
	host, port, _ := strings.Cut(of.Addr(), ":")
	askUnix(w.t, unix, "REPLICAOF", host, port)
	eventually(w.t, hang, func() string {
		text := askUnix(w.t, unix, "INFO", "replication")
		if !strings.Contains(text, "master_link_status:up") {
			return text
		}
		return ""
	})
}

// caughtUp waits until the spare, a replica of master 0, has all its data.
func (w *watched) caughtUp() {
	w.t.Helper()
	eventually(w.t, hang, func() string {
		has, there := w.info(0, "replication", "master_repl_offset"), askUnix(w.t, w.spare.Unix(), "INFO", "replication")
		if !strings.Contains(there, "slave_repl_offset:"+has+"\r") {
			return there
		}
		return ""
	})
}

func (w *watched) alone(unix string) { askUnix(w.t, unix, "REPLICAOF", "NO", "ONE") }

// H69: a master goes on voting after a backup, a snapshot, its first replica and the end of a replication backlog.
func TestHazardWhatForgetsNothingStopsNoVote(t *testing.T) {
	t.Parallel()
	for id, c := range map[string]struct{ before, then func(w *watched) }{
		"H69 backup": {then: func(w *watched) {
			for i := range 4 {
				w.backUp(i)
			}
		}},
		"H69 snapshot": {then: func(w *watched) {
			for i := range 4 {
				w.do(i, "BGSAVE")
			}
		}},
		"H69 first replica": {then: func(w *watched) { w.follow(w.spare.Unix(), w.servers[0]) }},
		"H69 freed backlog": {
			before: func(w *watched) {
				w.follow(w.spare.Unix(), w.servers[0])
				w.alone(w.spare.Unix())
			},
			then: func(w *watched) {
				w.do(0, "CONFIG", "SET", "repl-backlog-ttl", "1")
				eventually(w.t, hang, func() string {
					if w.info(0, "replication", "repl_backlog_active") != "0" {
						return "the backlog is still there"
					}
					return ""
				})
			},
		},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, 5, c.before)
			c.then(w)
			w.votesOn(t)
		})
	}
}

// H69: a master that was a replica in between may have lost data, however little it copied, and enters quarantine.
func TestHazardAMasterThatWasAReplicaStopsVoting(t *testing.T) {
	t.Parallel()
	for id, c := range map[string]struct{ before, then func(w *watched) }{
		"H69 full sync": {then: func(w *watched) { w.follow(w.servers[0].Unix(), w.spare) }},
		"H69 partial sync": {
			before: func(w *watched) { w.follow(w.spare.Unix(), w.servers[0]) },
			then: func(w *watched) { // a replica of a server with all its data and its history
				w.caughtUp()
				w.alone(w.spare.Unix())
				w.follow(w.servers[0].Unix(), w.spare)
				if text := askUnix(w.t, w.spare.Unix(), "INFO", "stats"); !strings.Contains(text, "sync_partial_ok:1") {
					w.t.Fatalf("no partial sync: %s", text)
				}
			},
		},
		"H69 cut sync": {then: func(w *watched) {
			host, port, _ := strings.Cut(donorThatDies(w.t), ":")
			w.do(0, "REPLICAOF", host, port)
			eventually(w.t, hang, func() string {
				if m := w.locker.Masters()[0]; m.State != "down" {
					return m.State
				}
				return ""
			})
		}},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, 3, c.before)
			// It may vote again after a second, so the test looks for the quarantine in the recorded states.
			c.then(w)
			w.alone(w.servers[0].Unix())
			eventually(t, hang, func() string {
				w.mu.Lock()
				defer w.mu.Unlock()
				if !strings.Contains(strings.Join(w.left, "; "), "quarantine") {
					return fmt.Sprintf("no quarantine: %q", w.left)
				}
				return ""
			})
		})
	}
}

// donorThatDies returns the address of a master that starts to send its data to each replica, and breaks off.
func donorThatDies(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { breakOff(c) })
		}
	})
	return l.Addr().String()
}

// breakOff answers a replica as a master does until it requests the data, and sends a part of them.
func breakOff(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hang))
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		answer := ""
		switch strings.ToUpper(strings.TrimSpace(line)) {
		case "PING":
			answer = "+PONG\r\n"
		case "REPLCONF":
			answer = "+OK\r\n"
		case "PSYNC":
			_, _ = fmt.Fprintf(c, "+FULLRESYNC %040d 0\r\n$1000000\r\nREDIS0010", 1)
			return
		}
		if _, err := c.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// askUnix sends a command to the server with this socket, and returns its answer as text.
func askUnix(t testing.TB, unix string, command string, args ...any) string {
	t.Helper()
	c := must[redis.Conn](t)(redis.Dial("unix", unix, redis.DialReadTimeout(hang), redis.DialWriteTimeout(hang)))
	defer c.Close()
	v := must[any](t)(c.Do(command, args...))
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

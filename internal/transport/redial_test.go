package transport

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// If the socket of a master accepts no more bytes, only the writer blocks, and not the callers.
func TestFullSocketBlocksNoCaller(t *testing.T) {
	srv := startServer(t)
	p := open(t, []string{srv.url()}, WithTimeout(200*time.Millisecond))
	waitUp(t, p)
	srv.pause()
	defer srv.resume()
	big := lua("big", "return 1", strings.Repeat("x", 1<<20))
	box := newMailbox()
	sent := 0
	for range 64 {
		if err := p.Send(0, big, Stamp{}, box); err != nil {
			break
		}
		sent++
	}
	unknown := 0
	for range sent {
		a := box.next(t)
		var e *Error
		if !errors.As(a.err, &e) || !errors.Is(e, ErrTimeout) {
			t.Errorf("the reply is %v", a.err)
		} else if e.Unknown {
			unknown++
		}
	}
	if unknown == 0 || unknown == sent {
		t.Errorf("the outcome of %d of %d calls is unknown", unknown, sent)
	}
}

// H57: a master that has become a replica answers a script with READONLY. The call gets this error. The connection
// is closed, and new ones are refused until the server is a master again.
func TestReadonlyClosesTheConnection(t *testing.T) {
	srv, other := startServer(t), startServer(t)
	p := open(t, []string{srv.url()}, WithHeartbeat(time.Hour), WithTimeout(5*time.Second))
	waitUp(t, p)
	write := lua("write", "return redis.call('SET', 'k', 'v')")
	if _, err := call(t, p, 0, write, Stamp{}); err != nil {
		t.Fatal(err)
	}
	old := state(p, 0)
	srv.do("REPLICAOF", "127.0.0.1", other.port)
	_, err := call(t, p, 0, write, Stamp{})
	var e *Error
	if !errors.As(err, &e) || e.Unknown || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a call to a replica returned %v", err)
	}
	if err := waitDown(t, p, 0, ErrRefused); !strings.Contains(err.Error(), "replica") {
		t.Errorf("the reason is %v", err)
	}
	if !poll(func() bool {
		return strings.Contains(state(p, 0).Err.Error(), `"slave"`) || strings.Contains(state(p, 0).Err.Error(), "loading")
	}) {
		t.Errorf("the reason after redialing is %v", state(p, 0).Err)
	}
	srv.do("REPLICAOF", "NO", "ONE")
	waitUp(t, p)
	if now := state(p, 0); now.Info.Identity() == old.Info.Identity() || now.Info.RunID != old.Info.RunID {
		t.Errorf("a failback must change only the identity, not the run id: it was %s and is %s", old.Info.Identity(),
			now.Info.Identity())
	}
}

// H52, H50: an unfit server is refused with an error that names the fix. After the fix the server comes up without
// further action.
func TestUnfitMastersAreRefused(t *testing.T) {
	master := startServer(t)
	for _, c := range []struct {
		name   string
		args   []string
		says   []string
		repair []any
	}{
		{"eviction", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"},
			[]string{"allkeys-lru", "second holder", "set maxmemory-policy to noeviction"},
			[]any{"CONFIG", "SET", "maxmemory-policy", "noeviction"}},
		{"volatile eviction", []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"},
			[]string{"volatile-ttl"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		{"replica", []string{"--replicaof", "127.0.0.1 " + master.port},
			[]string{"slave", "not master", "use the address of its master instead"}, []any{"REPLICAOF", "NO", "ONE"}},
		{"cluster", []string{"--cluster-enabled", "yes"}, []string{"cluster", "cluster-enabled no"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, c.args...)
			p := open(t, []string{srv.url()})
			err := waitDown(t, p, 0, ErrRefused)
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the text %q is not in the error %q", s, err)
				}
			}
			if err := p.Send(0, inspect("x"), Stamp{}, newMailbox()); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrDown) {
				t.Errorf("Send to an unfit master returned %v", err)
			}
			if c.repair != nil {
				srv.do(c.repair...)
				waitUp(t, p)
			}
		})
	}
}

func TestEvictionMayBeAllowed(t *testing.T) {
	srv := startServer(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	p := open(t, []string{srv.url()}, AllowEviction())
	waitUp(t, p)
	if info := state(p, 0).Info; info.Policy != "allkeys-lru" || info.MaxMemory != 100<<20 {
		t.Errorf("the INFO of the master is %+v", info)
	}
}

// H50: if two masters have addresses of the same server, the later connection is refused. It is accepted when the
// earlier one has ended.
func TestSameServerBehindTwoNamesIsRefused(t *testing.T) {
	srv := startServer(t)
	p := open(t, []string{srv.url(), "unix://" + srv.socket()})
	eventually(t, "one is up and one is refused", func() bool {
		a, b := state(p, 0), state(p, 1)
		return a.Session != 0 && errors.Is(b.Err, ErrRefused) || b.Session != 0 && errors.Is(a.Err, ErrRefused)
	})
	second := 0
	if state(p, 0).Session != 0 {
		second = 1
	}
	if err := state(p, second).Err; !strings.Contains(err.Error(), p.Addr(1-second)) || !strings.Contains(err.Error(),
		"two votes") {
		t.Errorf("the reason is %v", err)
	}
}

// The Info of a real server contains plausible values.
func TestInfoOfARealServer(t *testing.T) {
	srv := startServer(t, "--appendonly", "yes")
	p := open(t, []string{srv.url()})
	waitUp(t, p)
	if _, err := call(t, p, 0, inspect("x"), Stamp{}); err != nil {
		t.Error(err)
	}
	info := state(p, 0).Info
	if len(info.RunID) != 40 || info.ReplID2 != noID || info.SecondOffset != -1 || !info.BacklogKnown ||
		info.BacklogTTL != time.Hour ||
		info.Role != "master" || info.Version == "" || info.Policy != "noeviction" {
		t.Errorf("the INFO of the master is %+v", info)
	}
	now := time.Now().UnixMicro()
	if d := now - info.Time; d < -int64(time.Minute/1000) || d > int64(time.Minute/1000) {
		t.Errorf("the server's time is %d, and the local time is %d", info.Time, now)
	}
	if info.RTT <= 0 || info.Read == (clock.Instant{}) {
		t.Errorf("the round trip took %v, and INFO was read at %v", info.RTT, info.Read)
	}
}

package floor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "floor."

func open(t testing.TB, n int) (*Floor, []*redisproc.Server) {
	t.Helper()
	servers := redistest.Test(t, n, redisproc.Config{Name: "floor"})
	f, err := Dial(t.Context(), urlsOf(servers), prefix, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return f, servers
}

func urlsOf(servers []*redisproc.Server) (urls []string) {
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	return urls
}

func mustClose(t testing.TB, f *Floor) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// drive locks and unlocks n names in total, on g goroutines.
func drive(t testing.TB, f *Floor, g, n int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for i := range g {
		wg.Go(func() {
			c := f.NewCaller()
			name := fmt.Sprintf("name-%d", i)
			for left.Add(-1) >= 0 {
				if err := errors.Join(c.Lock(name), c.Unlock()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// 500 pairs of Lock and Unlock run each script once per pair on every master, publish each release, and leave no key.
// A lock that is still held has its key on every master. The masters can be checked directly after Close, which waits
// for all replies.
func TestFloorLocksAndUnlocksOnEveryMaster(t *testing.T) {
	f, servers := open(t, 5)
	const pairs = 500
	drive(t, f, 16, pairs)
	c := f.NewCaller()
	if err := c.Lock("held"); err != nil {
		t.Fatal(err)
	}
	if err := f.NewCaller().Lock("held"); !errors.Is(err, ErrNoMajority) {
		t.Errorf("Lock of a held name returned %v, want ErrNoMajority", err)
	}
	mustClose(t, f)
	for i, s := range servers {
		if n := calls(t, s.URL(), "evalsha"); n != 2*pairs+2+1 { // the last one is from Close
			t.Errorf("master %d has executed %d scripts, want %d", i, n, 2*pairs+2+1)
		}
		if n := calls(t, s.URL(), "publish"); n != pairs {
			t.Errorf("master %d has published %d releases, want %d", i, n, pairs)
		}
		if keys := keys(t, s.URL()); !slices.Equal(keys, []string{prefix + "held"}) {
			t.Errorf("master %d has the keys %q, want only that of the held lock", i, keys)
		}
	}
}

// The floor treats a master that is down as refusing, and does not wait for it. Without a majority every call fails.
func TestFloorWorksWithMajority(t *testing.T) {
	f, servers := open(t, 3)
	defer func() { _ = f.Close() }() // some connections have already ended, so Close may fail
	drive(t, f, 4, 100)
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	drive(t, f, 4, 100)
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	c := f.NewCaller()
	if err := c.Lock("one"); !errors.Is(err, ErrNoMajority) {
		t.Errorf("Lock with one of three masters returned %v, want ErrNoMajority", err)
	}
	if err := c.Unlock(); !errors.Is(err, ErrNoMajority) {
		t.Errorf("Unlock with one of three masters returned %v, want ErrNoMajority", err)
	}
}

func ask(t testing.TB, url, command string, args ...any) any {
	t.Helper()
	c, err := redis.DialURL(url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Do(command, args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func keys(t testing.TB, url string) []string {
	t.Helper()
	list, err := redis.Strings(ask(t, url, "KEYS", "*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func calls(t testing.TB, url, command string) (n int) {
	t.Helper()
	info, err := redis.String(ask(t, url, "INFO", "commandstats"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &n); err == nil {
			return n
		}
	}
	return 0
}

// A round wakes its caller once: with success at the third of five grants, or with failure at the third refusal.
func TestRoundWakesOnce(t *testing.T) {
	for _, c := range []struct {
		votes   []bool
		decides int
	}{
		{[]bool{true, false, true, false, true}, 4},
		{[]bool{true, true, true, true, true}, 2},
		{[]bool{false, true, false, false, true}, 3},
	} {
		r := newRound(3, 5, make(chan bool, 1))
		for i, v := range c.votes {
			r.vote(v)
			if woken := len(r.wake) == 1; woken != (i >= c.decides) {
				t.Errorf("votes %v: after %d votes, the caller is woken: %v", c.votes, i+1, woken)
			}
		}
		if got := <-r.wake; got != c.votes[c.decides] {
			t.Errorf("votes %v: the result is %v", c.votes, got)
		}
	}
}

func TestDialReportsMissingMaster(t *testing.T) {
	urls := append(urlsOf(redistest.Test(t, 1, redisproc.Config{Name: "floor"})), "redis://127.0.0.1:1")
	if _, err := Dial(t.Context(), urls, prefix, time.Second); err == nil {
		t.Fatal("Dial returned no error although one master is unreachable")
	}
}

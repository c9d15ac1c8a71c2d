package floor

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "redlock-floor"

func open(t testing.TB, form Form, n int) (*Floor, []string) {
	t.Helper()
	var urls []string
	for _, s := range redistest.Test(t, n, redisproc.Config{Name: "floor"}) {
		urls = append(urls, s.URL())
	}
	f, err := Dial(t.Context(), urls, Config{Form: form, Prefix: prefix, TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, urls
}

// drive runs pairs on g goroutines, n in all.
func drive(f *Floor, g, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for i := range g {
		wg.Go(func() {
			c := f.NewCaller()
			name := fmt.Sprintf("name-%d", i)
			for left.Add(-1) >= 0 {
				c.Pair(name)
			}
		})
	}
	wg.Wait()
}

// The floor must do the work that it is the measure for: the locks are on the masters while held, and gone afterwards,
// and each script ran once a master and pair.
func TestFloorLocksAndUnlocksOnEveryMaster(t *testing.T) {
	for _, form := range []Form{Direct, Queued} {
		t.Run(string(form), func(t *testing.T) {
			f, urls := open(t, form, 5)
			const pairs = 500
			drive(f, 16, pairs)
			for i, c := range f.conns {
				waitFor(t, fmt.Sprintf("master %d to have answered all", i), func() bool {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.queue) == 0 && calls(t, urls[i]) == 2*pairs+2 // and the two of the admission
				})
				if n := locks(t, urls[i]); n != 0 {
					t.Errorf("master %d has %d locks left", i, n)
				}
				if n := fences(t, urls[i]); n != 16 {
					t.Errorf("master %d has %d fences, want 16: the acquires carried no ballots", i, n)
				}
			}
		})
	}
}

// The plain form locks and unlocks too, with SET and one script.
func TestPlainFloorLocksAndUnlocks(t *testing.T) {
	var urls []string
	for _, s := range redistest.Test(t, 3, redisproc.Config{Name: "floor"}) {
		urls = append(urls, s.URL())
	}
	f, err := Dial(t.Context(), urls, Config{Form: Queued, Prefix: prefix, TTL: 10 * time.Second, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	c := f.NewCaller()
	c.Lock("one")
	waitFor(t, "the key to be on every master", func() bool {
		n := 0
		for _, u := range urls {
			n += locks(t, u)
		}
		return n == len(urls)
	})
	c.Unlock()
	drive(f, 8, 100)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for i, u := range urls {
		if n := locks(t, u); n != 0 {
			t.Errorf("master %d has %d locks left", i, n)
		}
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

func count(t testing.TB, url, pattern string) int {
	t.Helper()
	list, err := redis.Strings(ask(t, url, "KEYS", pattern), nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func locks(t testing.TB, url string) int  { return count(t, url, prefix+"*:lock") }
func fences(t testing.TB, url string) int { return count(t, url, prefix+"*:fence") }

func calls(t testing.TB, url string) (n int) {
	t.Helper()
	info, err := redis.String(ask(t, url, "INFO", "commandstats"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &n); err == nil {
			return n
		}
	}
	return 0
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited in vain for %s", what)
}

// A reply that is no grant must not be counted as one, and the third of five wakes the caller.
func TestRoundWakesOnceAtTheQuorum(t *testing.T) {
	var failed error
	f := &Floor{conns: make([]*conn, 5), fail: func(err error) { failed = err }}
	r := &round{f: f, quorum: 3, wake: make(chan struct{}, 1)}
	for i, reply := range []any{int64(1), []any{int64(2)}, int64(1), int64(0), int64(1)} {
		r.vote(reply)
		if woken := len(r.wake) == 1; woken != (i == 4) || failed != nil {
			t.Fatalf("after %d replies: woken %v, failed %v", i+1, woken, failed)
		}
	}
	bad := &round{f: f, quorum: 3, wake: make(chan struct{}, 1)}
	for i, reply := range []any{int64(0), redis.Error("ERR"), []any{int64(2)}} {
		if bad.vote(reply); (failed != nil) != (i == 2) {
			t.Fatalf("after %d refusals: failed %v", i+1, failed)
		}
	}
}

// Whoever closes the floor may look at the masters at once: nothing of it is still under way.
func TestCloseWaitsForTheSlowest(t *testing.T) {
	for _, form := range []Form{Direct, Queued} {
		var urls []string
		for _, s := range redistest.Test(t, 5, redisproc.Config{Name: "floor"}) {
			urls = append(urls, s.URL())
		}
		for range 20 {
			f, err := Dial(t.Context(), urls, Config{Form: form, Prefix: prefix, TTL: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			drive(f, 32, 64)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			for _, u := range urls {
				if n := locks(t, u); n != 0 {
					t.Fatalf("%s: %d locks are left", form, n)
				}
			}
		}
	}
}

func TestDialRefusesWithoutLeaving(t *testing.T) {
	url := redistest.Test(t, 1, redisproc.Config{Name: "floor"})[0].URL()
	if _, err := Dial(t.Context(), []string{url, "redis://127.0.0.1:1"}, Config{Form: Queued, Prefix: prefix, TTL: time.Second}); err == nil {
		t.Fatal("no error where one master is not there")
	}
	record, err := redis.String(ask(t, url, "GET", scripts.Prefix(prefix).Admission()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scripts.ParseRecord(record); err != nil {
		t.Error(err)
	}
}

// BenchmarkPair shows both forms; which is the floor at a number of goroutines is what the benchmark program decides.
func BenchmarkPair(b *testing.B) {
	for _, form := range []Form{Direct, Queued} {
		for _, g := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", form, g), func(b *testing.B) {
				f, _ := open(b, form, 5)
				drive(f, g, 1000)
				b.ReportAllocs()
				b.ResetTimer()
				drive(f, g, b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
			})
		}
	}
}

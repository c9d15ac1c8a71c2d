package floor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, n int) (*Floor, []*redisproc.Server) {
	t.Helper()
	servers := redistest.Test(t, n, redisproc.Config{Name: "floor"})
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	f, err := Dial(t.Context(), urls, "floor.", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return f, servers
}

// pairs locks and unlocks n names on each of 16 goroutines.
func pairs(t *testing.T, f *Floor, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range n {
				l, err := f.Lock(fmt.Sprintf("name-%d", i))
				if err == nil {
					err = l.Unlock(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Each pair runs each script once on every master, publishes its release, and leaves no key. A lock that is held has
// its key on every master. The masters can be asked directly after Close, which waits for all replies.
func TestFloorLocksOnEveryMaster(t *testing.T) {
	f, servers := open(t, 5)
	pairs(t, f, 30)
	if _, err := f.Lock("held"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock("held"); !errors.Is(err, ErrNoMajority) {
		t.Errorf("Lock of a held name returned %v, want ErrNoMajority", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for i, s := range servers {
		info := fmt.Sprintf("%s", redistest.Do(t, s, "INFO", "commandstats"))
		for _, want := range []string{"cmdstat_evalsha:calls=962,", "cmdstat_publish:calls=480,"} {
			if !strings.Contains(info, want) {
				t.Errorf("master %d: INFO does not contain %q", i, want)
			}
		}
		if keys := fmt.Sprintf("%s", redistest.Do(t, s, "KEYS", "*")); keys != "[floor.held]" {
			t.Errorf("master %d has the keys %s", i, keys)
		}
	}
}

// A master that is down counts as refusing, and a master that hangs is not waited for. Without a majority, calls fail.
func TestFloorWorksWithMajority(t *testing.T) {
	f, servers := open(t, 5)
	defer func() { _ = f.Close() }() // some connections have already ended, so Close may fail
	if err := errors.Join(servers[0].Kill(), servers[1].Pause()); err != nil {
		t.Fatal(err)
	}
	pairs(t, f, 5)
	if err := errors.Join(servers[1].Resume(), servers[1].Kill(), servers[2].Kill()); err != nil {
		t.Fatal(err)
	}
	l, err := f.Lock("one")
	if !errors.Is(err, ErrNoMajority) || !errors.Is(l.Unlock(t.Context()), ErrNoMajority) {
		t.Errorf("Lock with two of five masters returned %v, want ErrNoMajority", err)
	}
}

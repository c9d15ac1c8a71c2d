package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

// readyBound is how long a master may take until it answers.
const readyBound = 30 * time.Second

// A Master is one real server that a test may maltreat. A method that fails ends the test, so each is to be called from
// the goroutine that runs it. A master that is paused or killed at the end of the test is cleaned up all the same.
type Master interface {
	// Name stands in messages.
	Name() string
	// URL is how the host reaches it; it is the same over restarts.
	URL() string
	// Pause stops it from running: connections stay, nothing is answered, not even by the ones accepted meanwhile.
	Pause(t testing.TB)
	// Resume lets it run on; what was sent meanwhile is then read.
	Resume(t testing.TB)
	// Kill ends it by SIGKILL and returns when it is gone. It keeps nothing on disk.
	Kill(t testing.TB)
	// Start starts one that was killed, empty, and returns when it answers.
	Start(t testing.TB)
}

// A backend makes masters.
type backend struct {
	name  string
	start func(t testing.TB, n int) []Master
}

// chooseBackend decides once for all tests of a run.
var chooseBackend = sync.OnceValues(func() (*backend, error) {
	want := os.Getenv("REDLOCK_TEST_MASTERS")
	switch want {
	case "docker":
		return dockerBackend()
	case "process":
		return processBackend()
	case "":
	default:
		return nil, fmt.Errorf("REDLOCK_TEST_MASTERS=%q is neither docker nor process", want)
	}
	b, dockerErr := dockerBackend()
	if dockerErr == nil {
		return b, nil
	}
	b, processErr := processBackend()
	if processErr != nil {
		return nil, fmt.Errorf("no masters to test against: %w; %w", dockerErr, processErr)
	}
	b.name += fmt.Sprintf(" (no containers: %v)", dockerErr)
	return b, nil
})

// masters starts n masters for one test, its subtests included.
func masters(t testing.TB, n int) []Master {
	t.Helper()
	b, err := chooseBackend()
	if err != nil {
		if os.Getenv("REDLOCK_TEST_MASTERS") != "" {
			t.Fatal(err)
		}
		t.Skipf("this test needs a Docker engine or an installed redis-server: %v", err)
	}
	t.Logf("%d masters, %s", n, b.name)
	return b.start(t, n)
}

// urls lists the addresses of the masters.
func urls(list []Master) []string {
	all := make([]string, len(list))
	for i, m := range list {
		all[i] = m.URL()
	}
	return all
}

// ping asks a master once and reports an error where it does not answer within the bound.
func ping(url string, bound time.Duration) error {
	c, err := redis.DialURL(url, redis.DialConnectTimeout(bound), redis.DialReadTimeout(bound), redis.DialWriteTimeout(bound))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do("PING")
	return err
}

// awaitPing returns when a master answers. A port that accepts is not enough: the engine's proxy does so before the
// server listens.
func awaitPing(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(url, time.Second)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", readyBound, err)
		}
	}
}

// command sends one command to a master on a connection of its own.
func command(t testing.TB, m Master, name string, args ...any) any {
	t.Helper()
	c, err := redis.DialURL(m.URL(), redis.DialConnectTimeout(5*time.Second), redis.DialReadTimeout(5*time.Second))
	if err != nil {
		t.Fatalf("%s: %v", m.Name(), err)
	}
	defer c.Close()
	reply, err := c.Do(name, args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", m.Name(), name, err)
	}
	return reply
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := closeDocker(); err != nil {
		fmt.Fprintln(os.Stderr, "integration: cleaning up:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

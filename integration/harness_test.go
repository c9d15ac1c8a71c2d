package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// readyBound is how long a master may take until it answers.
const readyBound = 2 * time.Minute

// A Master is one real server that a test may maltreat. One that is paused, killed or cut off at the end of the test is
// cleaned up all the same. Methods with a context return when what they say is so, and may be called from any goroutine.
type Master interface {
	// Name stands in messages.
	Name() string
	// URL is how the host reaches it; it is the same over restarts.
	URL() string
	// Peer is how the other masters reach it, for replication.
	Peer() (host, port string)
	// Pause stops it from running: connections stay, nothing is answered, not even by the ones accepted meanwhile.
	Pause(ctx context.Context) error
	// Resume lets it run on; what was sent meanwhile is then read.
	Resume(ctx context.Context) error
	// Kill ends it by SIGKILL. It keeps nothing on disk, unless its arguments ask for it.
	Kill(ctx context.Context) error
	// Start starts one that was killed; it answers then.
	Start(ctx context.Context) error
	// Cut takes it off the network: connections end and new ones are refused, while it runs on and forgets nothing.
	// It is only for masters of a setup that says cuttable.
	Cut(ctx context.Context) error
	// Join connects it again; it answers then.
	Join(ctx context.Context) error
}

// each does one thing to several masters at once, such as each(t, Master.Pause, five[:2]...), and ends the test where
// it fails.
func each(t testing.TB, do func(Master, context.Context) error, list ...Master) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyBound)
	defer cancel()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, m := range list {
		wg.Go(func() {
			if err := do(m, ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", m.Name(), err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A setup is what is special about the masters of a test. The zero setup is plain servers that keep nothing.
type setup struct {
	args     []string           // further arguments of the server
	tls      bool               // it listens for TLS alone; args name the certificates
	dir      string             // a directory that the server sees under the same path; "" is none
	dial     []redis.DialOption // what the harness itself needs to reach it
	cuttable bool               // Cut will be used
}

// A backend makes masters.
type backend struct {
	name         string
	start        func(t testing.TB, n int, s setup) []Master
	noContainers error // why its masters are none
}

// chooseBackend decides once for all tests of a run.
var chooseBackend = sync.OnceValues(func() (*backend, error) {
	want := os.Getenv("REDLOCK_TEST_MASTERS")
	switch want {
	case "docker":
		return dockerBackend()
	case "process":
		b, err := processBackend()
		if err == nil {
			b.noContainers = errors.New("REDLOCK_TEST_MASTERS is process")
		}
		return b, err
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
		return nil, fmt.Errorf("%w; %w", dockerErr, processErr)
	}
	b.noContainers = dockerErr
	return b, nil
})

// needMasters returns what makes masters, and skips the test where nothing can.
func needMasters(t testing.TB) *backend {
	t.Helper()
	b, err := chooseBackend()
	if err != nil {
		if os.Getenv("REDLOCK_TEST_MASTERS") != "" {
			t.Fatal(err)
		}
		t.Skipf("needs a server program or containers: %v", err)
	}
	return b
}

// needContainers skips the test where masters are no containers.
func needContainers(t testing.TB) {
	t.Helper()
	if b := needMasters(t); b.noContainers != nil {
		t.Skipf("needs containers: %v", b.noContainers)
	}
}

// masters starts n plain masters for one test, its subtests included.
func masters(t testing.TB, n int) []Master {
	t.Helper()
	return mastersWith(t, n, setup{})
}

// mastersWith starts n masters for one test, its subtests included.
func mastersWith(t testing.TB, n int, s setup) []Master {
	t.Helper()
	b := needMasters(t)
	began := time.Now()
	list := b.start(t, n, s)
	t.Logf("%d masters, %s, ready in %v", n, b.name, time.Since(began).Round(time.Millisecond))
	return list
}

// urls lists the addresses of the masters.
func urls(list []Master) []string {
	all := make([]string, len(list))
	for i, m := range list {
		all[i] = m.URL()
	}
	return all
}

// hostPort is the address in a URL of a master.
func hostPort(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if _, after, found := strings.Cut(rest, "@"); found {
		rest = after
	}
	return rest
}

// ping asks a master once and reports an error where it does not answer within the bound.
func ping(url string, bound time.Duration, opts ...redis.DialOption) error {
	opts = append(opts, redis.DialConnectTimeout(bound), redis.DialReadTimeout(bound), redis.DialWriteTimeout(bound))
	c, err := redis.DialURL(url, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do("PING")
	return err
}

// awaitPing returns when a master answers, be it that it wants a password. A port that accepts is not enough: the
// engine's proxy does so before the server listens.
func awaitPing(ctx context.Context, url string, opts ...redis.DialOption) error {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(url, time.Second, opts...)
		if err == nil || strings.Contains(err.Error(), "NOAUTH") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", readyBound, err)
		}
	}
}

// dial opens a connection to a master, to be closed by the caller.
func dial(t testing.TB, m Master) redis.Conn {
	t.Helper()
	opts := []redis.DialOption{redis.DialConnectTimeout(5 * time.Second), redis.DialReadTimeout(5 * time.Second)}
	if d, ok := m.(interface{ dialOptions() []redis.DialOption }); ok {
		opts = append(opts, d.dialOptions()...)
	}
	c, err := redis.DialURL(m.URL(), opts...)
	if err != nil {
		t.Fatalf("%s: %v", m.Name(), err)
	}
	return c
}

// command sends one command to a master on a connection of its own.
func command(t testing.TB, m Master, name string, args ...any) any {
	t.Helper()
	c := dial(t, m)
	defer c.Close()
	reply, err := c.Do(name, args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", m.Name(), name, err)
	}
	return reply
}

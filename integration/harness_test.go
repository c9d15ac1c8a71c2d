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

// readyBound bounds the time until a master answers.
const readyBound = 2 * time.Minute

// A Master is one real server on which a test may inflict faults. A master that is paused, killed or cut at the end of
// the test is cleaned up, too. Methods with a context return when their effect is complete, and may be called from any
// goroutine.
type Master interface {
	// Name is the name in messages.
	Name() string
	// URL is the address for the host; it does not change on restarts.
	URL() string
	// Peer is the address for the other masters, for replication.
	Peer() (host, port string)
	// Pause freezes the server: connections stay open, but get no replies, not even those accepted meanwhile.
	Pause(ctx context.Context) error
	// Resume continues it; it then reads all pending input.
	Resume(ctx context.Context) error
	// Kill kills it with SIGKILL. It has no data on disk, unless its arguments enable persistence.
	Kill(ctx context.Context) error
	// Start restarts a killed server and waits until it answers.
	Start(ctx context.Context) error
	// Cut disconnects it from the network: connections end and new ones are refused, while it keeps running with its
	// data. It requires a setup with cuttable.
	Cut(ctx context.Context) error
	// Join reconnects it and waits until it answers.
	Join(ctx context.Context) error
}

// each does one thing to several masters concurrently, such as each(t, Master.Pause, five[:2]...), and ends the test on
// an error.
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

// A setup configures the masters of a test. The zero setup is plain servers without persistence.
type setup struct {
	args     []string           // additional arguments of the server
	tls      bool               // it accepts only TLS; args name the certificates
	dir      string             // a directory that the server sees under the same path; "" for none
	dial     []redis.DialOption // options of the harness's own connections
	cuttable bool               // the test uses Cut
}

// A backend makes masters.
type backend struct {
	name         string
	start        func(t testing.TB, n int, s setup) []Master
	noContainers error // why its masters are not containers
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

// needMasters returns the backend, and skips the test if there is none.
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

// needContainers skips the test if masters are not containers.
func needContainers(t testing.TB) {
	t.Helper()
	if b := needMasters(t); b.noContainers != nil {
		t.Skipf("needs containers: %v", b.noContainers)
	}
}

// masters starts n plain masters for one test and its subtests.
func masters(t testing.TB, n int) []Master {
	t.Helper()
	return mastersWith(t, n, setup{})
}

// mastersWith starts n masters for one test and its subtests.
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

// hostPort returns the address in a URL of a master.
func hostPort(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if _, after, found := strings.Cut(rest, "@"); found {
		rest = after
	}
	return rest
}

// ping pings a master once and returns an error if it does not answer within the bound.
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

// awaitPing returns when a master answers, even with a request for a password. An accepted connection is not enough,
// because the engine's proxy accepts before the server listens.
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

// command sends one command to a master on a separate connection.
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

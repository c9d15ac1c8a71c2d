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

	"github.com/redlock-go/redlock/internal/must"
)

// readyBound is the maximum time until a master answers.
const readyBound = 2 * time.Minute

// A Master is one real server on which a test may inflict faults. The server is removed at the end of the test in any
// state: paused, killed or cut. Methods with a context return when their effect is complete, and may be called from
// any goroutine.
type Master interface {
	// Name returns the name of the master in messages.
	Name() string
	// URL returns the address for clients on this machine. It does not change on restarts.
	URL() string
	// Peer returns the address for the other masters, which replication needs.
	Peer() (host, port string)
	// Pause freezes the server. Connections stay open, and new connections may be accepted, but the server does not
	// reply.
	Pause(ctx context.Context) error
	// Resume continues the server, which then reads all pending input.
	Resume(ctx context.Context) error
	// Kill ends the server with SIGKILL. Its data is lost, unless its arguments enable persistence.
	Kill(ctx context.Context) error
	// Start restarts a killed server and waits until it answers.
	Start(ctx context.Context) error
	// Cut disconnects the server from the network. Its connections end and new ones are refused, while the server keeps
	// running with its data. Cut requires a setup with cuttable.
	Cut(ctx context.Context) error
	// Join reconnects the server and waits until it answers.
	Join(ctx context.Context) error
}

// each calls do for several masters concurrently, for example each(t, Master.Pause, five[:2]...). It ends the test
// if a call fails.
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
	must.Do(t, errors.Join(errs...))
}

// A setup configures the masters of a test. The zero setup configures plain servers without persistence.
type setup struct {
	args     []string           // additional arguments of the server
	tls      bool               // the server accepts only TLS; args name the certificates
	dir      string             // a directory that the server sees under the same path; "" for none
	dial     []redis.DialOption // options for the connections of the test itself
	cuttable bool               // the test uses Cut
}

// A backend creates masters.
type backend struct {
	name         string
	start        func(t testing.TB, n int, s setup) []Master
	noContainers error // the reason why the masters are not containers; nil if they are
}

// chooseBackend chooses the backend once for all tests of a run.
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
		return nil, fmt.Errorf("REDLOCK_TEST_MASTERS=%q: must be docker or process", want)
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

// needMasters returns the backend. If there is none, it skips the test, or fails the test if REDLOCK_TEST_MASTERS is
// set.
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

// needContainers skips the test if the masters are not containers.
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

// urls returns the addresses of the masters.
func urls(list []Master) []string {
	all := make([]string, len(list))
	for i, m := range list {
		all[i] = m.URL()
	}
	return all
}

// hostPort returns the host and port in the URL of a master.
func hostPort(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if _, after, found := strings.Cut(rest, "@"); found {
		rest = after
	}
	return rest
}

// ping sends PING to a master. It returns an error if the master does not answer within the bound.
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

// awaitPing waits until a master answers, even if the answer is that a password is needed. An accepted connection is
// not enough, because the engine's proxy accepts connections before the server listens.
func awaitPing(ctx context.Context, url string, opts ...redis.DialOption) error {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(url, 5*time.Second, opts...)
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

// dial opens a connection to a master. The caller must close it.
func dial(t testing.TB, m Master) redis.Conn {
	t.Helper()
	opts := []redis.DialOption{redis.DialConnectTimeout(readyBound), redis.DialReadTimeout(readyBound)}
	if d, ok := m.(interface{ dialOptions() []redis.DialOption }); ok {
		opts = append(opts, d.dialOptions()...)
	}
	c, err := redis.DialURL(m.URL(), opts...)
	if err != nil {
		t.Fatalf("cannot connect to %s: %v", m.Name(), err)
	}
	return c
}

// command sends one command to a master on a separate connection, and returns the reply.
func command(t testing.TB, m Master, name string, args ...any) any {
	t.Helper()
	c := dial(t, m)
	defer c.Close()
	reply, err := c.Do(name, args...)
	if err != nil {
		t.Fatalf("%s: the command %s failed: %v", m.Name(), name, err)
	}
	return reply
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
)

// A vault is a credentials provider whose password changes with each call.
type vault struct {
	mu      sync.Mutex
	calls   int
	limits  []time.Duration // by call: time until its deadline, or 0 without a deadline
	problem func(ctx context.Context) error
}

func (v *vault) credentials(ctx context.Context) (user, password string, err error) {
	v.mu.Lock()
	v.calls++
	left := time.Duration(0)
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	v.limits = append(v.limits, left)
	n, problem := v.calls, v.problem
	v.mu.Unlock()
	if problem != nil {
		if err := problem(ctx); err != nil {
			return "", secret, err
		}
	}
	return "app", fmt.Sprint(secret, n), nil
}

func (v *vault) set(problem func(ctx context.Context) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problem = problem
}

func (v *vault) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls
}

// recordLogins makes f record AUTH commands, and returns a function that returns them.
func recordLogins(f *fake) (logins func() []string) {
	var list []string
	f.on = func(_ io.Writer, cmd []string) (bool, error) {
		if cmd[0] == "AUTH" {
			f.set(func() { list = append(list, cmd[1]+" "+cmd[2]) })
		}
		return false, nil
	}
	return func() []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Clone(list)
	}
}

func TestProviderIsCalledForEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, m := &vault{}, newFake("a")
		logins := recordLogins(m)
		p := open(t, []string{"redis://m"}, WithDialer(m.dial), WithCredentialsProvider(v.credentials),
			WithDialTimeout(700*time.Millisecond))
		synctest.Wait()
		for range 2 {
			m.cut()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		sub := p.Subscribe("channel", newEar()) // needs a second connection
		time.Sleep(time.Second)
		synctest.Wait()
		sub.Close()
		want := []string{"app " + secret + "1", "app " + secret + "2", "app " + secret + "3", "app " + secret + "4"}
		if !slices.Equal(logins(), want) {
			t.Errorf("the logins are %q", logins())
		}
		if !slices.Equal(v.limits, slices.Repeat([]time.Duration{700 * time.Millisecond}, 4)) {
			t.Errorf("the time left in each call is %v", v.limits)
		}
		m.cutAll(true)
		time.Sleep(time.Minute)
		if n := v.count(); n != 4 {
			t.Errorf("the provider was called %d times, although the server accepts no connection", n)
		}
		_ = p.Close()
	})
}

// If a credentials provider fails in any way when one master is dialled, this master is down, and the reason contains
// no secret. When the provider works again, the master comes up. Another master with the same provider, which was
// connected before, is not affected.
func TestFailingProviderKeepsMasterDown(t *testing.T) {
	for _, c := range []struct {
		name    string
		problem func(ctx context.Context) error
		says    string
		timeout bool
	}{
		{"error", func(context.Context) error { return errors.New("vault is sealed") },
			"credentials: the credentials provider failed: vault is sealed", false},
		{"URL in the error", func(context.Context) error {
			return fmt.Errorf(`Get "https://me:%s@vault/v1?token=%s": EOF, not %s`, secret, secret, secret)
		}, `failed: Get "https://xxxxx@vault/v1?xxxxx": EOF, not xxxxx`, false},
		{"errors of others", func(context.Context) error {
			return errors.Join(fault.ErrPoolClosed, fault.ErrDown, context.Canceled, redis.Error("NOAUTH"))
		}, "the credentials provider failed", false},
		{"panic", func(context.Context) error { panic(errors.New(secret)) },
			"the credentials provider failed: it panicked with a value of type *errors.errorString", false},
		{"panic of the error", func(context.Context) error { return (*badError)(nil) },
			"it panicked: runtime error: invalid memory address", false},
		{"panic of the runtime", func(context.Context) error { return []error{}[len(secret)] },
			"it panicked: runtime error: index out of range", false},
		{"end of the goroutine", func(context.Context) error { runtime.Goexit(); return nil },
			"failed: it ended its goroutine", false},
		{"blocks", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"timed out: the credentials provider has not returned", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failingProvider(t, c.problem, c.says, c.timeout) })
		})
	}
}

type badError struct{ text string }

func (e *badError) Error() string { return e.text }

func failingProvider(t *testing.T, problem func(ctx context.Context) error, says string, timeout bool) {
	ms, v := newEars(2), &vault{}
	p := open(t, ms.urls(), WithCredentialsProvider(v.credentials), WithDialer(ms.dial))
	synctest.Wait()
	v.set(problem)
	ms[0].cut()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	err := state(p, 0).Err
	if err == nil || !errors.Is(err, fault.ErrDown) || errors.Is(err, fault.ErrTimeout) != timeout ||
		errors.Is(err, fault.ErrPoolClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		fault.IsCode(err, "NOAUTH") || !strings.Contains(err.Error(), says) {
		t.Fatalf("the reason is %v", err)
	}
	mustNotShow(t, err)
	if _, err := call(t, p, 1, inspect("x"), Condition{}); err != nil {
		t.Errorf("a call to the other master failed: %v", err)
	}
	v.set(nil)
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if s := state(p, 0); s.Err != nil {
		t.Errorf("the master is still down after the provider has recovered: %v", s.Err)
	}
	_ = p.Close()
}

// If a provider ignores the end of its context, it is not called again before it returns. Close does not wait for the
// provider.
func TestHungProviderIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		v, m := &vault{problem: func(context.Context) error { <-hang; return nil }}, newFake("a")
		p := open(t, []string{"redis://m"}, WithDialer(m.dial), WithCredentialsProvider(v.credentials))
		time.Sleep(time.Minute)
		synctest.Wait()
		err := state(p, 0).Err
		if v.count() != 1 || !errors.Is(err, fault.ErrTimeout) || !strings.Contains(err.Error(), "an earlier call") {
			t.Errorf("the provider was called %d times; the reason is %v", v.count(), err)
		}
		v.set(nil)
		close(hang)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := state(p, 0); s.Err != nil {
			t.Errorf("the master is still down after the provider has returned: %v", s.Err)
		}
		hang = make(chan struct{})
		v.set(func(context.Context) error { <-hang; return nil })
		m.cut()
		time.Sleep(time.Second / 2)
		start := time.Now()
		_ = p.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close waited %v for the provider", took)
		}
		close(hang)
	})
}

func TestEmptyPasswordIsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, []string{"redis://m"}, WithDialer(newFake("a").dial),
			WithCredentialsProvider(func(context.Context) (user, password string, err error) { return "app", "", nil }))
		synctest.Wait()
		if err := state(p, 0).Err; err == nil || !strings.Contains(err.Error(), "it returned no password") {
			t.Error(err)
		}
		_ = p.Close()
	})
}

// The provider is called for each connection to a node of a cluster, including those that search for the node with the
// slot. Sentinels do not use the provider.
func TestProviderOfClusterAndSentinel(t *testing.T) {
	v := &vault{}
	common := defaults()
	must.Do(t, common.apply([]Option{WithCredentialsProvider(v.credentials)}))
	synctest.Test(t, func(t *testing.T) {
		m := newFake("a")
		logins := recordLogins(m)
		cluster := common
		cluster.Dialer = m.dial
		named := URL("redis+cluster://n1,n2?buckets=2")
		named.bucket = 1
		cfg, err := named.settings(cluster)
		if err != nil {
			t.Fatal(err)
		}
		m.set(func() { m.delay = time.Millisecond }) // so that both nodes are queried before either has named the owner
		if _, err = cfg.FindFunc(t.Context()); err != nil {
			t.Error(err)
		}
		if len(logins()) != 2 {
			t.Errorf("the logins to two nodes are %q", logins())
		}
	})
	cfg, err := URL("redis+sentinel://s1/job").settings(common)
	if err != nil {
		t.Fatal(err)
	}
	if s := cfg.Authority().(*sentinel.Finder).Sentinels[0]; cfg.Provider == nil || s.Provider != nil {
		t.Errorf("the provider of the sentinel is set: %v; that of the master: %v", s.Provider, cfg.Provider)
	}
}

func TestCredentialsExcludeAProvider(t *testing.T) {
	v := &vault{}
	provided, fixed := WithCredentialsProvider(v.credentials), WithCredentials("app", secret)
	foreign := &redis.Pool{Dial: func() (redis.Conn, error) { return nil, errors.New("not dialled") }}
	for says, list := range map[string]struct {
		m    Master
		opts []Option
	}{
		"exclude each other: use one":            {URL("redis://a"), []Option{provided, fixed}},
		`master "a:6379": WithCredentials, or c`: {URL("redis://u:"+secret+"@a", provided), nil},
		"are those of its *redis.Pool":           {FromRedisPool("a", foreign, provided), nil},
	} {
		_, err := New([]Master{list.m}, list.opts...)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not contain %q: %v", says, err)
			continue
		}
		mustNotShow(t, err)
	}
	for _, c := range []struct {
		m        Master
		common   Option
		provides bool
	}{
		{URL("redis://u:p@a"), provided, false}, {URL("redis://a", fixed), provided, false},
		{URL("redis://a", provided), fixed, true}, {URL("redis://a"), provided, true}, {URL("redis://a"), fixed, false},
		{FromRedisPool("a", foreign), provided, false},
	} {
		_, configs, err := settings([]Master{c.m}, []Option{c.common})
		if err != nil {
			t.Fatal(err)
		}
		if got := configs[0]; (got.Provider != nil) != c.provides || c.provides && got.Password != "" {
			t.Errorf("%q has the provider %v and the password %q", c.m.Name, got.Provider, got.Password)
		}
	}
}

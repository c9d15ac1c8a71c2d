package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

var errNoRoute = errors.New("no master is reached in this test")

// farPool returns a pool of n masters that are never reached.
func farPool(t *testing.T, n int) *pool.Pool {
	t.Helper()
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("redis://192.0.2.1:%d", 1000+i)
	}
	p, err := pool.Open(urls, transport.WithRedial(time.Hour, time.Hour), pool.WithDialer(
		func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func farLocker(t *testing.T, opts ...Option) *Locker {
	t.Helper()
	l := must.Get(New(farPool(t, 3), opts...))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// tracedLocker returns a farLocker and a function that returns the number of attempts of this Locker.
func tracedLocker(t *testing.T, opts ...Option) (l *Locker, attempts func() int64) {
	t.Helper()
	var n atomic.Int64
	l = farLocker(t, append(opts, WithTrace(On("attempt", func(redlockinfo.Event) { n.Add(1) })))...)
	return l, func() int64 {
		<-client.SetOf(l).Clients[0].EventsIdle()
		return n.Load()
	}
}

// isInvalid fails the test unless err wraps ErrInvalid, begins with the name of its package and contains each of the
// texts.
func isInvalid(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("the error is %v, want ErrInvalid", err)
	}
	if !strings.HasPrefix(err.Error(), "redlock: ") && !strings.HasPrefix(err.Error(), "pool: ") {
		t.Errorf("%q does not begin with the name of a package", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not contain %q", err, text)
		}
	}
}

// lockOptionCases are options of a call that are out of range, with the texts of their errors.
var lockOptionCases = []struct {
	name string
	opts []LockOption
	want []string
}{
	{"TTL of nothing", []LockOption{WithTTL(0)}, []string{"TTL 0s", "10ms", "30s"}},
	{"TTL below nothing", []LockOption{WithTTL(-time.Second)}, []string{"TTL -1s", "10ms"}},
	{"TTL below the minimum", []LockOption{WithTTL(MinTTL - 1)}, []string{"TTL 9.999999ms", "10ms"}},
	{"H13: TTL of 500 us, which is 0 ms", []LockOption{WithTTL(500 * time.Microsecond)}, []string{"TTL 500µs", "10ms"}},
	{"TTL above the max TTL", []LockOption{WithTTL(DefaultMaxTTL + 1)}, []string{"TTL 30.000000001s",
		"max TTL 30s"}},
	{"TTL of 292 years", []LockOption{WithTTL(math.MaxInt64)}, []string{"TTL 2562047h47m16.854775807s", "max TTL 30s"}},
	{"negative minimum validity", []LockOption{WithMinValidity(-time.Millisecond)}, []string{"-1ms"}},
	{"minimum validity of the TTL", []LockOption{WithMinValidity(10 * time.Second)}, []string{"10s", "9.898s", "102ms"}},
	{"minimum validity 1 ns too long", []LockOption{WithMinValidity(9898*time.Millisecond + 1)},
		[]string{"9.898000001s", "at most 9.898s"}},
	{"negative maximum hold", []LockOption{WithMaxHold(-time.Minute)}, []string{"-1m0s"}},
	{"maximum hold without a unit", []LockOption{WithMaxHold(10)}, []string{"maximum hold 10ns", "in nanoseconds"}},
	{"negative tries", []LockOption{WithTries(-1)}, []string{"-1 tries"}},
	{"wait limit of 0", []LockOption{WithWaitLimit(0)}, []string{"wait limit must be positive"}},
	{"wait limit without a unit", []LockOption{WithWaitLimit(10)}, []string{"wait limit 10ns", "in nanoseconds"}},
	{"quorum wait without a unit", []LockOption{WithQuorumWait(30)}, []string{"quorum wait 30ns", "in nanoseconds"}},
	{"minimum hold without a unit", []LockOption{WithMinHold(60)}, []string{"minimum hold 60ns", "in nanoseconds"}},
	{"hold warning without a unit", []LockOption{WithHoldWarning(600)}, []string{"hold warning 600ns"}},
	{"linger without a unit", []LockOption{WithLinger(9999)}, []string{"linger 9.999µs"}},
	{"TTL without a unit", []LockOption{WithTTL(10)}, []string{"TTL 10ns", "10ms", "in nanoseconds"}},
	{"negative minimum hold", []LockOption{WithMinHold(-1)}, []string{"-1ns"}},
	{"minimum hold of the max TTL", []LockOption{WithMinHold(DefaultMaxTTL)}, []string{"30s"}},
	{"minimum hold of 292 years", []LockOption{WithMinHold(math.MaxInt64)}, []string{"2562047h47m16.854775807s",
		"drift of 25620h28m40.370547759s"}},
	{"nil", []LockOption{nil}, []string{"option is nil"}},
	{"nil after a valid option", []LockOption{WithTTL(time.Second), nil}, []string{"option is nil"}},
}

// lockerOptionCases are invalid options of a Locker only.
var lockerOptionCases = []struct {
	name string
	opts []Option
	want []string
}{
	{"no prefix", []Option{WithPrefix("")}, []string{"prefix is empty"}},
	{"brace in the prefix", []Option{WithPrefix("a{b")}, []string{`"a{b"`, "brace"}},
	{"closing brace in the prefix", []Option{WithPrefix("}")}, []string{`"}"`, "brace"}},
	{"colon at the end of the prefix", []Option{WithPrefix("app:")}, []string{`"app:"`, "colon"}}, // H105
	{"colon before a bucket's tag", []Option{WithPrefix("b:{17}")}, []string{`"b:"`, "colon"}},
	{"long prefix", []Option{WithPrefix(strings.Repeat("p", 1025))}, []string{"1025 bytes", "1024"}},
	{"max TTL of nothing", []Option{WithMaxTTL(0)}, []string{"max TTL 0s", "10ms", "24h0m0s",
		"WithoutRestartGuard"}},
	{"max TTL without a unit", []Option{WithMaxTTL(60)}, []string{"max TTL 60ns", "in nanoseconds"}},
	{"max TTL below nothing", []Option{WithMaxTTL(-5 * time.Second)}, []string{"max TTL -5s", "10ms"}},
	{"max TTL below the minimum TTL", []Option{WithMaxTTL(MinTTL - 1), WithTTL(MinTTL)}, []string{"9.999999ms", "10ms"}},
	{"max TTL of more than a day", []Option{WithMaxTTL(MaxTTL + 1)}, []string{"24h0m0.000000001s"}},
	{"max TTL below the TTL", []Option{WithMaxTTL(9 * time.Second)},
		[]string{"TTL 10s", "max TTL 9s", "give at most 9s"}},
	{"no durable master", []Option{WithDurableMasters("")}, []string{"durable master is empty"}}, // H162
	{"a durable master without a name", []Option{WithDurableMasters("a:1", "")}, []string{"durable master is empty"}},
	{"epoch without masters", []Option{WithConfiguration(Configuration{Epoch: 2})}, []string{"epoch 2 has no masters"}},
	{"negative epoch", []Option{WithConfiguration(Configuration{Epoch: -1})}, []string{"epoch -1"}},
	{"long label", []Option{WithLabel(strings.Repeat("i", 65))}, []string{"65 bytes", "64"}},
	{"label of two lines", []Option{WithLabel("a\nb")}, []string{"control character"}},
	{"no guard, TTL of more than a day", []Option{WithoutRestartGuard(), WithTTL(MaxTTL + 1)},
		[]string{"TTL 24h0m0.000000001s", "24h0m0s"}},
	{"nil", []Option{nil}, []string{"option is nil"}},
}

func TestNewRefusesOptionsOutOfRange(t *testing.T) {
	p := farPool(t, 3)
	try := func(name string, opts []Option, want []string) {
		t.Run(name, func(t *testing.T) {
			l, err := New(p, opts...)
			if l != nil {
				t.Errorf("New returned a Locker with the error; closing it: %v", l.Close())
			}
			isInvalid(t, err, want...)
		})
	}
	for _, c := range lockerOptionCases {
		try(c.name, c.opts, c.want)
	}
	for _, c := range lockOptionCases {
		opts := make([]Option, len(c.opts))
		for i, o := range c.opts {
			if o != nil { // a nil LockOption is a nil Option
				opts[i] = o
			}
		}
		try(c.name, opts, c.want)
	}
}

func TestCallRefusesOptionsOutOfRange(t *testing.T) {
	l, attempts := tracedLocker(t)
	handle := client.HandleOf(DefaultPrefix, "n", "i", 1)
	for _, c := range lockOptionCases {
		t.Run(c.name, func(t *testing.T) {
			for op, call := range map[string]func() error{
				"TryLock": func() error { _, err := l.TryLock(t.Context(), "n", c.opts...); return err },
				"Lock":    func() error { _, err := l.Lock(t.Context(), "n", c.opts...); return err },
				"Import":  func() error { _, err := l.Import(t.Context(), handle, c.opts...); return err },
				"Do": func() error {
					return l.Do(t.Context(), "n", func(context.Context, *Lock) error {
						t.Error("f ran")
						return nil
					}, c.opts...)
				},
			} {
				err := call()
				isInvalid(t, err, c.want...)
				if n := attempts(); n != 0 {
					t.Fatalf("%s made an attempt", op)
				}
			}
		})
	}
}

func TestNamesAndHandlesAreCheckedFirst(t *testing.T) {
	l, attempts := tracedLocker(t, WithPrefix("mine"))
	try := func(name string) error { _, err := l.TryLock(t.Context(), name); return err }
	isInvalid(t, try(""), "empty")
	long := strings.Repeat("n", scripts.MaxName+1)
	isInvalid(t, try(long), "65537 bytes", "65536")
	if text := try(long).Error(); len(text) > 300 {
		t.Errorf("the error repeats the name, %d bytes", len(text))
	}
	_, err := l.Import(t.Context(), client.HandleOf("theirs", "n", "i", 1))
	isInvalid(t, err, `"theirs"`, `"mine"`)
	_, err = l.Import(t.Context(), "no handle")
	isInvalid(t, err, "no handle")
	if n := attempts(); n != 0 {
		t.Fatalf("%d attempts were made", n)
	}
	// Every character is allowed in a name, and so is the maximum length: these calls fail only for lack of masters.
	for _, name := range []string{long[1:], "\x00", "{}", "ÿ", " "} {
		if err := try(name); !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrInvalid) || !errors.Is(err, errNoRoute) {
			t.Errorf("a name of %d bytes was refused with %v, want ErrNoQuorum", len(name), err)
		}
	}
}

func TestNewRefusesNoPoolAndTooManyMasters(t *testing.T) {
	_, err := New(nil)
	isInvalid(t, err, "nil")
	_, err = New(farPool(t, quorum.Most+1))
	isInvalid(t, err, "65 masters", "64")
	l := must.Get(New(farPool(t, quorum.Most)))(t)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestBoundsThemselvesAreAllowed(t *testing.T) {
	p := farPool(t, 3)
	for name, opts := range map[string][]Option{
		"defaults":            nil,
		"least TTL":           {WithTTL(MinTTL)},
		"TTL of the guard":    {WithTTL(DefaultMaxTTL)},
		"least guard":         {WithMaxTTL(MinTTL), WithTTL(MinTTL)},
		"longest of all":      {WithMaxTTL(MaxTTL), WithTTL(MaxTTL)},
		"no guard, a day":     {WithoutRestartGuard(), WithTTL(MaxTTL)},
		"all that is left":    {WithMinValidity(9898 * time.Millisecond)},
		"least validity":      {WithMinValidity(1)},
		"longest prefix":      {WithPrefix(strings.Repeat("p", 1024))},
		"longest label":       {WithLabel(strings.Repeat("i", 64))},
		"no label":            {WithLabel("")},
		"TTL not in whole ms": {WithTTL(MinTTL + 1)},
		"no trace, no clock":  {WithTrace(nil), WithClock(nil), WithExtension(false), WithMaxHold(0), WithTries(0)},
		"no policy":           {WithTries(0)},
		"longest minimum":     {WithMinHold(DefaultMaxTTL*98/100 - 2*ms)},
	} {
		l, err := New(p, opts...)
		if err != nil {
			t.Errorf("%s: the options were refused: %v", name, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Options of a call apply only to that call. They override those of the Locker, in the order in which they are given.
func TestCallOptionsOverrideLocker(t *testing.T) {
	l := farLocker(t, WithTTL(20*time.Second), WithMaxHold(time.Minute), WithTries(3))
	c := client.SetOf(l).Clients[0]
	got, err := client.Apply(c, []LockOption{WithTTL(5 * time.Second), WithTTL(6 * time.Second), WithExtension(false)})
	if err != nil || got.TTL != 6*time.Second || got.MaxHold != time.Minute || got.Extend || got.Tries != 3 {
		t.Errorf("the call uses %+v, %v", got, err)
	}
	if of, err := client.Apply(c, []LockOption{}); err != nil || of.TTL != 20*time.Second || !of.Extend {
		t.Errorf("the call changed the Locker to %+v, %v", of, err)
	}
	// The default minimum validity is half of the TTL of the call, not of the Locker.
	if least := got.Least; least != 3*time.Second {
		t.Errorf("the minimum validity is %v, want 3s", least)
	}
}

// changing returns a joint configuration with the given numbers of old and next masters.
func changing(old, next int) Configuration {
	s := Configuration{Epoch: 1}
	for i := range old + next {
		if name := fmt.Sprintf("redis://10.1.0.%d", i); i < old {
			s.Masters = append(s.Masters, name)
		} else {
			s.Next = append(s.Next, name)
		}
	}
	return s
}

// New warns about risky settings. In a joint configuration New checks each set separately, so there is no warning for
// three old and three next masters, although six is an even number.
func TestWarningsOfAllowedConfigurations(t *testing.T) {
	for _, c := range []struct {
		n    int
		opts []Option
		want []string
	}{
		{1, nil, []string{"one master: locks are as safe as that one server; after a restart it grants no locks for " +
			"30s, unless WithDurableMasters names it, which needs appendonly yes, appendfsync always and " +
			"no-appendfsync-on-rewrite no"}},
		{1, []Option{WithAllMastersDurable()}, []string{"one master: locks are as safe as that one server"}},
		{1, []Option{WithoutRestartGuard()}, []string{"one master"}},
		{3, nil, nil},
		{3, []Option{WithDurableMasters("10.0.0.9:6379")}, []string{"10.0.0.9:6379"}}, // a misspelt name
		{4, nil, []string{"4 masters"}},
		{5, []Option{WithoutRestartGuard()}, []string{"guard is off"}},
		{2, []Option{WithoutRestartGuard()}, []string{"2 masters", "guard is off"}},
		{2, []Option{WithConfiguration(changing(3, 3))}, nil},
		{2, []Option{WithConfiguration(changing(3, 4))}, []string{"4 masters"}},
	} {
		var traced []string
		l, err := New(farPool(t, c.n), append(c.opts, WithTrace(On("warning",
			func(e redlockinfo.Event) { traced = append(traced, e.Err.Error()) })))...)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		got := client.SetOf(l).Warnings()
		if len(got) != len(c.want) || len(traced) != len(c.want) {
			t.Errorf("%d masters: the warnings are %q, and %q were traced", c.n, got, traced)
		}
		for i := range min(len(got), len(c.want)) {
			if !strings.Contains(got[i], c.want[i]) || traced[i] != got[i] {
				t.Errorf("%d masters: the warning is %q, want %q", c.n, got[i], c.want[i])
			}
		}
	}
}

// guard=off in the URLs of all masters has the effect of WithoutRestartGuard; in the URLs of only some masters it is
// an error.
func TestURLsTurnOffGuard(t *testing.T) {
	for _, c := range []struct{ urls, want string }{
		{"redis://127.0.0.1:1?guard=off redis://127.0.0.1:2?guard=off&name=b redis://127.0.0.1:3?guard=off",
			"the restart guard is off"},
		{"redis://127.0.0.1:1?guard=off redis://127.0.0.1:2", "guard=off is in the URLs of 1 of 2 masters"},
		{"redis://127.0.0.1:1?guard=on", "the parameter guard has only the value off"},
	} {
		got := ""
		p, err := pool.Open(strings.Fields(c.urls))
		if err == nil {
			defer p.Close()
			var l *Locker
			if l, err = New(p, WithLogger(slog.New(slog.DiscardHandler))); err == nil {
				got = strings.Join(client.SetOf(l).Warnings(), " ")
				_ = l.Close()
			}
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("%s: %q, want %q", c.urls, got, c.want)
		}
	}
}

// Settings of a redigo *redis.Pool that have no effect are among the warnings, which are logged and traced.
func TestWarningsOfARedisPool(t *testing.T) {
	p, err := pool.New([]pool.Master{pool.FromRedisPool("old", &redis.Pool{
		MaxActive: 7, Dial: func() (redis.Conn, error) { return nil, errNoRoute },
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var traced []string
	l, err := New(p, WithTrace(On("warning", func(e redlockinfo.Event) { traced = append(traced, e.Err.Error()) })))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if list := client.SetOf(l).Warnings(); len(list) != 2 || !slices.Equal(list, traced) ||
		!strings.Contains(list[1], "ignored: MaxActive") {
		t.Errorf("the warnings are %q, and %q were traced", list, traced)
	}
}

const ms = time.Millisecond

// ParseConfiguration rejects data after the configuration, because such a file may have been overwritten only in
// part.
func TestParseConfigurationRejectsTrailingData(t *testing.T) {
	const set = `{"epoch": 1, "masters": ["a:1"], "next": ["b:1"]}`
	for _, end := range []string{"", " \n\t"} {
		if s, err := ParseConfiguration([]byte(set + end)); err != nil || s.Epoch != 1 || len(s.Masters) != 1 ||
			len(s.Next) != 1 {
			t.Errorf("with %q at the end ParseConfiguration returned %+v, %v", end, s, err)
		}
	}
	for _, end := range []string{"}", "]", "x", ",", set, "\n}", "null"} {
		_, err := ParseConfiguration([]byte(set + end))
		isInvalid(t, err, "text after")
	}
	for text, want := range map[string]string{
		"": "configuration of masters", "[]": "configuration of masters", `{"epoch": 0, "master": ["a:1"]}`: "master",
		`{"epoch": 0}`: "has no masters", `{"epoch": 1, "masters": ["a:1"]}`: "needs next masters",
		strings.Replace(set, "1", "2", 1): "must not have next", strings.Replace(set, "1", "-1", 1): "from 0",
	} {
		_, err := ParseConfiguration([]byte(text))
		isInvalid(t, err, want)
	}
}

package transport

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

// lua returns a call of the given script without keys.
func lua(name, text string, args ...any) *frame.Call {
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	return frame.New(&frame.Script{Name: name, SHA: sha, Text: text}).With(words...)
}

// stampedLua returns a call of a script whose first argument is the stamp.
func stampedLua(name, text string, args ...string) *frame.Call {
	c := frame.New(lua(name, text).Script)
	c.Stamp()
	return c.With(args...)
}

const testPrefix = scripts.Prefix("pooltest")

var encoder = scripts.NewEncoder(testPrefix, 1)

func keysOf(name string) *scripts.Keys {
	k := testPrefix.Keys(name)
	return &k
}

func inspect(name string) *frame.Call { return encoder.Inspect(keysOf(name), 0) }

// term returns a term of this length that begins at a ballot.
func term(d time.Duration, ballot int64) scripts.Term {
	return scripts.Term{TTL: d, Until: ballot + d.Microseconds()}
}

func acquireOf(name string, ballot int64) *frame.Call {
	return encoder.Acquire(keysOf(name), "me:1:"+name, term(patience, ballot), ballot, ballot, 1, nil)
}

// An answer holds the arguments of one call of Reply.
type answer struct {
	master int
	value  any
	err    error
}

// A mailbox is a Receiver that stores every answer.
type mailbox struct {
	mu      sync.Mutex
	answers []answer
	ch      chan answer
}

func newMailbox() *mailbox { return &mailbox{ch: make(chan answer, 1<<16)} }

func (m *mailbox) Reply(master int, value any, err error) {
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			panic("Reply got an error that is not *Error")
		}
	}
	a := answer{master, value, err}
	m.mu.Lock()
	m.answers = append(m.answers, a)
	m.mu.Unlock()
	m.ch <- a
}

func (m *mailbox) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.answers)
}

// next waits for the next answer.
func (m *mailbox) next(t testing.TB) answer {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-m.ch:
		return a
	case <-timer.C:
		t.Fatal("there was no reply in time")
		return answer{}
	}
}

// call sends a call and waits for the reply. It returns the error of Send or of the reply.
func call(t testing.TB, p *Transport, i int, c *frame.Call, st Condition) (any, error) {
	t.Helper()
	box := newMailbox()
	if err := p.Send(i, c, st, box); err != nil {
		return nil, err
	}
	a := box.next(t)
	return a.value, a.err
}

// open creates a Transport and closes it at the end of the test. With real servers it uses long timeouts by default,
// so that tests which do not test timeouts pass on a busy machine. With fakes it uses the default timeouts of the
// package.
func open(t testing.TB, urls []string, opts ...Option) *Transport {
	t.Helper()
	var given Config
	must.Do(t, given.apply(opts))
	if given.Dialer == nil {
		opts = append([]Option{WithTimeout(patience), WithDialTimeout(patience)}, opts...)
	}
	p := must.Get(Open(urls, append([]Option{WithScripts(scripts.All...)}, opts...)...))(t)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func urls(servers []*redistest.Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.URL()
	}
	return list
}

// state returns the present state of a master according to Watch.
func state(p *Transport, i int) Event {
	var last Event
	p.Watch(func(event Event) {
		if event.Master == i {
			last = event
		}
	})()
	return last
}

func waitUp(t testing.TB, p *Transport) {
	t.Helper()
	for i := range p.N() {
		if !redistest.Until(func() bool { return state(p, i).Session != 0 }) {
			t.Fatalf("master %d did not come up: %v", i, state(p, i).Err)
		}
	}
}

// waitDown waits until master i is down with an error that matches target, and returns the error.
func waitDown(t testing.TB, p *Transport, i int, target error) error {
	t.Helper()
	if !redistest.Until(func() bool { return errors.Is(state(p, i).Err, target) }) {
		t.Fatalf("master %d did not go down because of %v: %v", i, target, state(p, i).Err)
	}
	return state(p, i).Err
}

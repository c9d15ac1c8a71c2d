package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/feed"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A rude server is a fake whose test supplies the replies to the commands of a subscription connection.
type rude struct {
	*fake
	mu    sync.Mutex
	on    func(cmd []string) string // "" closes the connection
	count map[string]int            // number of each command
	subs  int                       // connections that sent a SUBSCRIBE
	lag   time.Duration             // before each reply
}

func newRude(on func(cmd []string) string) *rude {
	return &rude{fake: newFake("a1"), on: on, count: map[string]int{}}
}

func (r *rude) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go r.serve(server)
	return client, nil
}

func (r *rude) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	first := true
	for {
		cmd, err := readCommand(in)
		if err != nil {
			return
		}
		reply := ""
		switch cmd[0] {
		case "SUBSCRIBE", "UNSUBSCRIBE", "PING":
			r.mu.Lock()
			r.count[cmd[0]]++
			if first {
				r.subs++
			}
			first = false
			reply = r.on(cmd)
			lag := r.lag
			r.mu.Unlock()
			if lag > 0 {
				pass(lag)
			}
		default:
			reply = r.reply(cmd)
		}
		if reply == "" {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func (r *rude) setLag(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag = d
}

func (r *rude) setOn(on func(cmd []string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}

// counted returns the number of such commands since the previous call.
func (r *rude) counted(cmd string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.count[cmd] = 0 }()
	return r.count[cmd]
}

// connected returns the number of subscription connections since the previous call.
func (r *rude) connected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.subs = 0 }()
	return r.subs
}

// polite replies as a real server does.
func polite(cmd []string) string {
	if cmd[0] == "PING" {
		return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	}
	var b strings.Builder
	for i, channel := range cmd[1:] {
		fmt.Fprintf(&b, "*3\r\n%s%s:%d\r\n", bulk(strings.ToLower(cmd[0])), bulk(channel), i)
	}
	return b.String()
}

// A tally is a Listener that counts.
type tally struct {
	mu                sync.Mutex
	messages, renewed int
}

func (c *tally) Message(int, string, string) { c.add(1, 0) }
func (c *tally) Resubscribed(int)            { c.add(0, 1) }

func (c *tally) add(m, g int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages, c.renewed = c.messages+m, c.renewed+g
}

func (c *tally) get() (messages, renewed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages, c.renewed
}

// rudely runs f in a bubble with a pool of one rude server.
func rudely(t *testing.T, on func(cmd []string) string, f func(t *testing.T, r *rude, p *Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRude(on)
		p := open(t, []string{"redis://m1"}, WithDialer(r.dial))
		waitUp(t, p)
		f(t, r, p)
		_ = p.Close()
		settle(time.Second) // the server's goroutines end
	})
}

func settle(d time.Duration) {
	pass(d)
	synctest.Wait()
}

const noPerm = "-NOPERM No permissions to access a channel\r\n"

// H56: a user without channel rights gets an error, and refused subscriptions are retried rarely. Once the user has the
// right, all of them become active.
func TestRefusedSubscriptionsAreRetriedRarely(t *testing.T) {
	rudely(t, func([]string) string { return noPerm }, func(t *testing.T, r *rude, p *Transport) {
		r.setLag(time.Millisecond)
		e := &tally{}
		subs := make([]*Subscription, 100)
		for i := range subs {
			subs[i] = p.Subscribe(fmt.Sprint("c", i), e)
		}
		settle(time.Second)
		if n := r.counted("SUBSCRIBE"); n != 100 {
			t.Errorf("%d commands initially", n)
		}
		for _, s := range subs {
			var reply redis.Error
			if err := s.Err(0); confirmedCount(s) != 0 || !errors.As(err, &reply) || fault.Code(reply) != "NOPERM" {
				t.Fatalf("Err returned %v", err)
			}
		}
		settle(10 * time.Minute)
		if n := r.counted("SUBSCRIBE"); n < 15*100 || n > 20*100 {
			t.Errorf("%d commands in 10 min", n)
		}
		if n := r.connected(); n != 1 {
			t.Errorf("%d connections", n)
		}
		for _, s := range subs[:50] {
			s.Close()
		}
		r.setOn(polite)
		settle(time.Minute)
		if n := r.counted("SUBSCRIBE"); n != 50 {
			t.Errorf("%d commands for 50 channels", n)
		}
		for _, s := range subs[50:] {
			if confirmedCount(s) != 1 || s.Err(0) != nil {
				t.Fatalf("not active: %v", s.Err(0))
			}
			s.Close()
		}
		if _, g := e.get(); g != 50 {
			t.Errorf("%d renewals", g)
		}
		settle(time.Second)
	})
}

// If some of many channels are refused, the others become active at once.
func TestOneRefusedChannelDoesNotSpoilOthers(t *testing.T) {
	picky := func(cmd []string) string {
		for _, c := range cmd[1:] {
			if strings.HasPrefix(c, "bad") {
				return noPerm
			}
		}
		return polite(cmd)
	}
	rudely(t, picky, func(t *testing.T, r *rude, p *Transport) {
		var good, bad []*Subscription
		for i := range 1500 {
			good = append(good, p.Subscribe(fmt.Sprint("good", i), &tally{}))
			if i%50 == 3 {
				bad = append(bad, p.Subscribe(fmt.Sprint("bad", i), &tally{}))
			}
		}
		settle(time.Second)
		for _, s := range good {
			if confirmedCount(s) != 1 {
				t.Fatalf("not active: %v", s.Err(0))
			}
		}
		for _, s := range bad {
			if confirmedCount(s) != 0 {
				t.Fatal("stands")
			}
		}
		r.counted("SUBSCRIBE")
		settle(10 * time.Minute)
		if n := r.counted("SUBSCRIBE"); n > 20*len(bad) {
			t.Errorf("%d commands in 10 min", n)
		}
		for _, s := range append(good, bad...) {
			s.Close()
		}
		settle(time.Second)
	})
}

// After a transient error the connection is made again with pauses, until the subscription is active.
func TestTransientRefusalIsTriedAgain(t *testing.T) {
	rudely(t, func([]string) string { return "-BUSY a script is running\r\n" }, func(t *testing.T, r *rude, p *Transport) {
		s := p.Subscribe("a", &tally{})
		settle(30 * time.Second)
		if n := r.connected(); n < 20 || n > 80 || !errors.Is(s.Err(0), ErrDown) {
			t.Errorf("%d connections in 30 s: %v", n, s.Err(0))
		}
		r.setOn(polite)
		settle(2 * time.Second)
		if confirmedCount(s) != 1 {
			t.Errorf("not active: %v", s.Err(0))
		}
		s.Close()
	})
}

// Subscriptions work for a user with neither the right to PING nor to UNSUBSCRIBE.
func TestMissingRightsToPingAndUnsubscribe(t *testing.T) {
	mean := func(cmd []string) string {
		if cmd[0] == "SUBSCRIBE" {
			return polite(cmd)
		}
		return "-NOPERM this user may not\r\n"
	}
	rudely(t, mean, func(t *testing.T, r *rude, p *Transport) {
		e := &tally{}
		s := p.Subscribe("stays", e)
		settle(time.Minute)
		for i := range 1000 {
			x := p.Subscribe(fmt.Sprint(i%10), e)
			synctest.Wait()
			if confirmedCount(x) != 1 {
				t.Fatalf("not active: %v", x.Err(0))
			}
			x.Close()
			synctest.Wait()
		}
		if n := r.connected(); n != 1 || confirmedCount(s) != 1 {
			t.Errorf("%d connections, %v", n, s.Err(0))
		}
		s.Close()
	})
}

// If a server sends garbage, the connection ends and is made again with pauses; calls on the other connection are not
// affected.
func TestHostileServer(t *testing.T) {
	tooLarge := map[string]bool{"large bulk": true, "large array": true, "array that has no length": true,
		"negative array":     true,
		"length with no end": true, "nested arrays": true, "endless line": true}
	flood := strings.Repeat("*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n", 1000)
	for name, reply := range map[string]string{
		"large bulk":               "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$999999999\r\n",
		"large array":              "*99999999\r\n",
		"array that has no length": "*\r\n",
		"negative array":           "*-7\r\n",
		"length with no end":       "$" + strings.Repeat("9", 1<<20),
		"nested arrays":            strings.Repeat("*1\r\n", 100_000),
		"endless line":             "+" + strings.Repeat("x", 1<<20),
		"no protocol":              "HTTP/1.1 400 Bad Request\r\n\r\n",
		"wrong confirmation":       "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n",
		"confirmation twice":       polite([]string{"SUBSCRIBE", "a", "a"}),
		"other confirmation":       "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n",
		"null array":               "*-1\r\n",
		"null elements":            "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
		"short message":            "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n",
		"answer to no PING":        "+PONG\r\n",
		"number":                   ":7\r\n",
		"nothing":                  "",
		"flood, then nothing":      flood + ":1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			rudely(t, func([]string) string { return reply }, func(t *testing.T, r *rude, p *Transport) {
				s := p.Subscribe("a", &tally{})
				settle(30 * time.Second)
				if n := r.connected(); n < 20 || n > 80 {
					t.Errorf("%d connections in 30 s", n)
				}
				err := s.Err(0)
				if !errors.Is(err, ErrDown) || errors.Is(err, wire.ErrReplySize) != tooLarge[name] {
					t.Errorf("Err returned %v", err)
				}
				if _, err := call(t, p, 0, inspect("x"), Stamp{}); err != nil || state(p, 0).Session != 1 {
					t.Errorf("the other connection: %v", err)
				}
				r.setOn(polite)
				settle(2 * time.Second)
				if confirmedCount(s) != 1 {
					t.Errorf("not active: %v", s.Err(0))
				}
				s.Close()
			})
		})
	}
}

// A channel name that is too long gives a Subscription whose Err says so.
func TestOverlongChannel(t *testing.T) {
	rudely(t, polite, func(t *testing.T, r *rude, p *Transport) {
		long := p.Subscribe(strings.Repeat("x", feed.MaxChannel+1), &tally{})
		s := p.Subscribe(strings.Repeat("x", feed.MaxChannel), &tally{})
		settle(time.Second)
		if confirmedCount(long) != 0 || !errors.Is(long.Err(0), ErrInvalid) || confirmedCount(s) != 1 {
			t.Errorf("%v, %v", long.Err(0), s.Err(0))
		}
		long.Close()
		s.Close()
		settle(time.Second)
	})
}

// H40: if a channel is closed and subscribed to again while the server is slow, at most one command is outstanding, and
// the last desired state is reached.
func TestQuickChangesNeitherCrossNorPileUp(t *testing.T) {
	rudely(t, polite, func(t *testing.T, r *rude, p *Transport) {
		e := &tally{}
		stays := p.Subscribe("stays", e)
		settle(time.Second)
		r.setLag(100 * time.Millisecond)
		r.counted("SUBSCRIBE")
		for i := range 1000 {
			s := p.Subscribe("a", e)
			synctest.Wait()
			s.Close()
			synctest.Wait()
			if i%10 == 0 {
				pass(time.Millisecond)
			}
		}
		if n := r.counted("SUBSCRIBE"); n > 2 {
			t.Errorf("%d commands in 100 ms with answers after 100 ms", n)
		}
		last := &tally{}
		s := p.Subscribe("a", last)
		settle(time.Second)
		if _, g := last.get(); confirmedCount(s) != 1 || g != 1 {
			t.Errorf("%d renewals: %v", g, s.Err(0))
		}
		s.Close()
		settle(time.Second)
		if n := r.connected(); n != 1 || confirmedCount(stays) != 1 {
			t.Errorf("%d connections", n)
		}
		stays.Close()
		settle(time.Second)
	})
}

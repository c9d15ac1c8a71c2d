package transport

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/transport/feed"
)

// rudely runs f in a bubble with a Transport of one fake. The function reply returns the fake's replies to
// subscription commands.
func rudely(t *testing.T, reply func(cmd []string) string, f func(t *testing.T, r *fake, p *Transport)) {
	t.Helper()
	virtual(t, 1, func(t *testing.T, ms ears, p *Transport) {
		ms[0].answerSubscriptions(reply)
		f(t, ms[0], p)
	})
}

// answerSubscriptions sets the function that returns the replies to subscription commands. If reply returns "", the
// connection is closed.
func (f *fake) answerSubscriptions(reply func(cmd []string) string) {
	f.set(func() {
		f.on = func(w io.Writer, cmd []string) (bool, error) {
			if !ofSubscription(cmd) {
				return false, nil
			}
			f.mu.Lock()
			lag := f.delay
			f.mu.Unlock()
			if lag > 0 {
				pass(lag)
			}
			text := reply(cmd)
			if text == "" {
				return true, io.EOF
			}
			_, err := io.WriteString(w, text)
			return true, err
		}
	})
}

func settle(d time.Duration) {
	pass(d)
	synctest.Wait()
}

const noPerm = "-NOPERM No permissions to access a channel\r\n"

// H56: if the user lacks the right to channels, refused subscriptions are seldom retried. When the right is granted,
// all subscriptions become active.
func TestRefusedSubscriptionsAreRetriedRarely(t *testing.T) {
	rudely(t, func([]string) string { return noPerm }, func(t *testing.T, r *fake, p *Transport) {
		r.set(func() { r.delay = time.Millisecond })
		e := newEar()
		subs := make([]*feed.Subscription, 100)
		for i := range subs {
			subs[i] = p.Subscribe(fmt.Sprint("c", i), e)
		}
		settle(time.Second)
		if n := r.counted("SUBSCRIBE"); n != 100 {
			t.Errorf("there were %d SUBSCRIBE commands initially, want 100", n)
		}
		for _, s := range subs {
			if confirmedCount(s) != 0 {
				t.Fatal("a refused subscription is active")
			}
		}
		settle(10 * time.Minute)
		if n := r.counted("SUBSCRIBE"); n < 15*100 || n > 20*100 {
			t.Errorf("there were %d SUBSCRIBE commands in 10 min", n)
		}
		if n := r.subscribers(); n != 1 {
			t.Errorf("there were %d connections, want 1", n)
		}
		for _, s := range subs[:50] {
			s.Close()
		}
		r.answerSubscriptions(polite)
		settle(time.Minute)
		if n := r.counted("SUBSCRIBE"); n != 50 {
			t.Errorf("there were %d SUBSCRIBE commands for 50 channels", n)
		}
		for _, s := range subs[50:] {
			if confirmedCount(s) != 1 {
				t.Fatal("the subscription is not active")
			}
			s.Close()
		}
		if _, g := e.heard(); g != 50 {
			t.Errorf("there were %d renewals, want 50", g)
		}
		settle(time.Second)
	})
}

// If a server answers SUBSCRIBE with a transient error, or sends something else than a reply, the connection ends and
// is made again with pauses, until the subscription is active. Calls, which use another connection, are not affected.
// What is no reply at all, or is too large, ends any connection: see hostilities.
func TestHostileServer(t *testing.T) {
	flood := strings.Repeat("*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n", 1000)
	for name, reply := range map[string]string{
		"transient error":     "-BUSY a script is running\r\n",
		"wrong confirmation":  "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n",
		"confirmation twice":  polite([]string{"SUBSCRIBE", "a", "a"}),
		"other confirmation":  "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n",
		"null array":          "*-1\r\n",
		"null elements":       "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
		"short message":       "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n",
		"answer to no PING":   "+PONG\r\n",
		"number":              ":7\r\n",
		"nothing":             "",
		"flood, then nothing": flood + ":1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			rudely(t, func([]string) string { return reply }, func(t *testing.T, r *fake, p *Transport) {
				s := p.Subscribe("a", newEar())
				settle(30 * time.Second)
				if n := r.subscribers(); n < 20 || n > 80 {
					t.Errorf("there were %d connections in 30 s", n)
				}
				if _, err := call(t, p, 0, inspect("x"), Condition{}); err != nil || state(p, 0).Session != 1 {
					t.Errorf("a call on the other connection failed: %v", err)
				}
				r.answerSubscriptions(polite)
				settle(2 * time.Second)
				if confirmedCount(s) != 1 {
					t.Error("the subscription is not active")
				}
				s.Close()
			})
		})
	}
}

// H40: if a channel is closed and subscribed to again while the server is slow, the last desired state is reached, and
// only the last subscription is notified.
func TestQuickChangesDoNotCross(t *testing.T) {
	rudely(t, polite, func(t *testing.T, r *fake, p *Transport) {
		e := newEar()
		stays := p.Subscribe("stays", e)
		settle(time.Second)
		r.set(func() { r.delay = 10 * time.Millisecond })
		for range 10 {
			p.Subscribe("a", e).Close()
		}
		last := newEar()
		s := p.Subscribe("a", last)
		settle(DefaultTimeout)
		if _, g := last.heard(); confirmedCount(s) != 1 || g != 1 {
			t.Errorf("there were %d renewals and %d confirmations", g, confirmedCount(s))
		}
		s.Close()
		settle(time.Second)
		if n := r.subscribers(); n != 1 || confirmedCount(stays) != 1 {
			t.Errorf("there were %d connections, want 1", n)
		}
		e.want(t, 0, 1)
		stays.Close()
		settle(time.Second)
	})
}

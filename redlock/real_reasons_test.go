package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A syncLog is a log that a test reads while it is written.
type syncLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *syncLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Rights are taken away while a lock is held, and nothing else is acquired. The error and the log record of the
// loss name the right, and Healthy has heard of the refused extensions.
func TestLossNamesMissingRight(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{})
	each := func(words ...any) {
		t.Helper()
		for _, s := range servers {
			c, err := redis.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Do("ACL", words...); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
	}
	rules := []any{"SETUSER", "lock", "on", ">pw"}
	for word := range strings.FieldsSeq(scripts.Prefix(redlock.DefaultPrefix).Rule()) {
		rules = append(rules, word)
	}
	each(rules...)
	var urls []string
	for _, s := range servers {
		urls = append(urls, "redis://lock:pw@"+s.Addr())
	}
	p, err := pool.Open(urls)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	log := &syncLog{}
	l, err := redlock.New(p, redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil))), redlock.WithTTL(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(admin.Of(l).Admit(ctx), l.WaitReady(ctx)); err != nil {
		t.Fatal(err)
	}
	k, err := l.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	each("SETUSER", "lock", "-@scripting")
	select {
	case <-k.Done():
	case <-ctx.Done():
		t.Fatal("the lock is still held")
	}
	const why = "of 3: NOPERM this user has no permissions to run the 'evalsha' command"
	if err := k.Err(); !errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), why) ||
		strings.Contains(err.Error(), "grant") {
		t.Errorf("the lock has ended with %v, want ErrLost because %s", err, why)
	}
	if err := l.Healthy(ctx); err == nil || !strings.Contains(err.Error(), "evalsha") {
		t.Errorf("Healthy returned %v, want the refused right", err)
	}
	l.Close()
	if text := log.String(); !strings.Contains(text, "lock was lost") || !strings.Contains(text, "in time: ") {
		t.Errorf("the log does not say why the lock was lost:\n%s", text)
	}
}

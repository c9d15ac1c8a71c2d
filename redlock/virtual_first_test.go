package redlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Tests of the first experiences of a new user: masters that do not vote yet, held names, and the log.

// A logbook collects the log of a Locker, without the times.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *logbook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logbook) option() redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
}

// since returns the lines since the last call.
func (b *logbook) since() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.TrimSpace(b.text.String())
	b.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func TestVirtualLogExplainsMissingQuorum(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var book logbook
		w.locker(book.option())
		after(900 * time.Millisecond)
		if lines := book.since(); len(lines) != 0 {
			t.Errorf("log of the first second: %q", lines)
		}
		after(200 * time.Millisecond)
		lines := book.since()
		if len(lines) != 1 || !strings.Contains(lines[0], "no lock can be acquired") ||
			!strings.Contains(lines[0], "for=1 able=0 needed=2 waiting=0") || !strings.Contains(lines[0], "quarantine") ||
			!strings.Contains(lines[0], "redlock admit") {
			t.Errorf("log after a second: %q", lines)
		}
		after(13500 * time.Millisecond)
		if lines := book.since(); len(lines) != 2 { // after 3 s and 7 s; then after 15 s
			t.Errorf("%d more lines in 14.6 s: %q", len(lines), lines)
		}
		after(30 * time.Second)
		book.since()
		after(5 * time.Minute)
		if lines := book.since(); len(lines) != 0 {
			t.Errorf("the masters vote; log: %q", lines)
		}
	}, memory.Fresh())
}

// H115: in JSON the list of masters contains only masters, and the hint is a separate attribute.
func TestVirtualLogInJSON(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var book logbook
		w.locker(redlock.WithLogger(slog.New(slog.NewJSONHandler(&book, nil))), redlock.WithOwner("web-1"))
		after(1100 * time.Millisecond)
		lines := book.since()
		if len(lines) != 1 {
			t.Fatalf("log: %q", lines)
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		masters, _ := line["masters"].([]any)
		delete(line, "masters")
		for i, m := range masters {
			m, _ := m.(map[string]any)
			if m["master"] != w.masters.Master(i).Addr() || m["state"] != "quarantine" || m["left"] != 29. ||
				!strings.HasPrefix(fmt.Sprint(m["reason"]), "the master is in quarantine until ") {
				t.Errorf("master %d: %v", i, m)
			}
		}
		if len(masters) != 3 {
			t.Errorf("masters: %v", masters)
		}
		want := map[string]any{
			"level": "WARN", "msg": "redlock: no lock can be acquired", "owner": "web-1", "for": 1., "able": 0.,
			"needed": 2., "waiting": 0.,
			"hint": "if no client can hold a lock on these masters, redlock admit (Admin.Admit) ends the quarantine",
		}
		if !reflect.DeepEqual(line, want) {
			t.Errorf("log: %v, want %v", line, want)
		}
	}, memory.Fresh())
}

func TestVirtualTheLogTellsOfMastersAndLosses(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var book logbook
		l := w.locker(book.option(), redlock.WithOwner("web-1"))
		after(time.Second)
		if lines := book.since(); len(lines) != 0 {
			t.Errorf("no problem, but the log has %q", lines)
		}
		lock := w.take(l, "x")
		w.masters.Master(0).Stop()
		after(5 * time.Second)
		w.masters.Master(0).Restart(false)
		after(time.Minute)
		text := strings.Join(book.since(), "\n")
		for _, want := range []string{"master is down", "master does not vote", "master votes"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %q:\n%s", want, text)
			}
		}
		lost := func(lock *redlock.Lock, why string) {
			t.Helper()
			<-lock.Done()
			synctest.Wait()
			text := strings.Join(book.since(), "\n")
			if !strings.Contains(text, `msg="redlock: lock was lost" owner=web-1 lock=x token=`) ||
				!strings.Contains(text, why) {
				t.Errorf("the log lacks the loss or its cause %s:\n%s", why, text)
			}
			if err := lock.Err(); !errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), why) {
				t.Errorf("cause of the loss: %s; the lock ended with %v", why, err)
			}
		}
		w.masters.Lose("x")
		lost(lock, "too few masters still have it")

		lock = w.take(l, "x")
		w.masters.Master(0).Stop()
		w.masters.Master(1).Stop()
		lost(lock, "no majority extended it in time")
	})
}

// A dial that hangs must not appear as a deadline either, since no context of the caller has expired.
func TestVirtualADialThatHangsIsNoDeadline(t *testing.T) {
	virtual(t, 3, func(w *world) {
		p, err := pool.Open(w.urls(0, 1, 2), transport.WithClock(clock.Runtime()), pool.WithDialer(
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))
		if err != nil {
			t.Fatal(err)
		}
		w.Cleanup(func() { _ = p.Close() })
		_, err = w.over(p).Lock(w.Context(), "x", redlock.WithWaitLimit(5*time.Second))
		if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestVirtualWaitReadyErrorHasReasons(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		err := l.WaitReady(ctx)
		if !errors.Is(err, redlock.ErrNoQuorum) || !errors.Is(err, redlock.ErrQuarantine) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("during the quarantine: %v", err)
		}
		if err := l.WaitReady(w.Context()); err != nil {
			t.Error(err)
		}
		if _, err := l.TryLock(w.Context(), "x"); err != nil {
			t.Errorf("lock after WaitReady: %v", err)
		}
		if err := l.Close(w.Context()); err != nil {
			t.Error(err)
		}
		if err := l.WaitReady(w.Context()); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("closed Locker: %v", err)
		}
	}, memory.Fresh())
}

var remaining = regexp.MustCompile(`expires in [0-9.ms]+`)

// The most common mistakes, and the complete texts of their errors.
func TestVirtualTheCommonestMistakesAreExplained(t *testing.T) {
	bubble(t, 3, func(w *world) {
		l, other := w.locker(redlock.WithOwner("web-1")), w.locker(redlock.WithOwner("web-2"))
		after(time.Second)
		lock := w.take(l, "x")
		released := w.take(l, "y")
		_ = released.Unlock(w.Context())
		closed := w.locker()
		_ = closed.Close(w.Context())
		gone := w.pool()
		orphan := w.over(gone)
		after(time.Second)
		_ = gone.Close()
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			w.Cleanup(cancel)
			return ctx
		}
		since := time.UnixMicro(lock.Token()).Format(time.TimeOnly)
		for _, one := range []struct {
			mistake string
			do      func() error
			told    string
		}{
			{"an address without a scheme", func() error {
				_, err := pool.Open([]string{"localhost:6379"})
				return err
			}, `pool: master "localhost:6379": it is not of the form redis://host:port: ` +
				`it has no scheme; write redis://localhost:6379`},
			{"no address", func() error {
				_, err := pool.Open(nil)
				return err
			}, "pool: there is no master: the list is empty"},
			{"a TTL above the max TTL", func() error {
				_, err := l.Lock(w.Context(), "z", redlock.WithTTL(time.Minute))
				return err
			},
				"redlock: invalid option: TTL 1m0s is above the max TTL 30s of this client: raise that of the masters " +
					"first (redlock guard --set 1m0s URL...), then WithMaxTTL of all clients; or lower WithTTL"},
			{"locking again without the context of the lock", func() error {
				_, err := l.Lock(short(), "x")
				return err
			}, `redlock: lock "x": context deadline exceeded (held already); held by "web-1" since ` + since +
				", a lock of this Locker: to lock it again inside of that one, pass the context of that lock (Lock.Context); " +
				"expires in T unless extended"},
			{"a name that another holds", func() error {
				_, err := other.TryLock(w.Context(), "x")
				return err
			}, `redlock: lock "x": held by another; 0 of 3 masters agreed, quorum is 2; held by "web-1" since ` + since +
				"; expires in T unless extended"},
			{"unlocking twice", func() error { return released.Unlock(w.Context()) },
				`redlock: unlock "y": the lock was released before`},
			{"unlocking what was not had", func() error {
				var none *redlock.Lock
				return none.Unlock(w.Context())
			}, "redlock: invalid option: the lock is nil: the call that should have returned it has failed; see its error"},
			{"a closed Locker", func() error {
				_, err := closed.Lock(w.Context(), "x")
				return err
			}, "redlock: the locker is closed"},
			{"a closed pool", func() error {
				_, err := orphan.Lock(w.Context(), "x")
				return err
			}, `redlock: lock "x": the pool is closed; 0 of 3 masters can grant a lock, quorum is 2; ` +
				"master-1:6379, master-2:6379, master-3:6379: send: the pool is closed"},
		} {
			if err := one.do(); err == nil || remaining.ReplaceAllString(err.Error(), "expires in T") != one.told {
				t.Errorf("%s:\n%v\nwant:\n%s", one.mistake, err, one.told)
			}
		}
		_ = lock.Unlock(w.Context())
	})
	bubble(t, 3, func(w *world) {
		l := w.locker()
		after(time.Second)
		_, err := l.TryLock(w.Context(), "x")
		const want = `redlock: lock "x": no quorum of masters; 0 of 3 masters can grant a lock, quorum is 2; ` +
			"master-1:6379, master-2:6379, master-3:6379: lock: the master is in quarantine until 00:00:30 UTC by its clock, " +
			"since it is new or may have forgotten locks; " +
			"if no client can hold a lock on these masters, redlock admit (Admin.Admit) ends the quarantine"
		if err == nil || err.Error() != want {
			t.Errorf("new masters:\n%v\nwant:\n%s", err, want)
		}
	}, memory.Fresh())
}

package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

const outOfMemory = "OOM command not allowed when used memory > 'maxmemory'."

// A health collects what all methods of a Locker report about its health.
type health struct {
	mu   sync.Mutex
	logs []string
}

func (h *health) option() redlock.Option {
	return logTo(func(r slog.Record) {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += " " + a.String()
			return true
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		h.logs = append(h.logs, text)
	})
}

// logged returns how many records have all of these texts.
func (h *health) logged(texts ...string) (n int) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.logs {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
		}
	}
	return n
}

// initials returns the first letter of the state of each master.
func (w *world) initials(l *redlock.Locker) (list string) {
	for _, m := range l.Masters() {
		list += m.State[:1]
	}
	return list
}

func (w *world) refuse(text string, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Refuse(text) }, which...)
}

var healthCases = []struct {
	name string
	run  func(w *world, l *redlock.Locker, h *health)
}{
	{"a Lock that gets no majority", func(w *world, l *redlock.Locker, h *health) {
		w.refuse(outOfMemory, 0, 1, 2)
		call := w.call(w.Context(), l, "n")
		after(1200 * time.Millisecond)
		if h.logged("no lock can be acquired", "waiting=1", "OOM", "master-1") == 0 {
			w.Errorf("after a second: %q", h.logs)
		}
		if got := w.initials(l); got != "fffvv" {
			w.Errorf("states %q", got)
		}
		err := l.Healthy(w.Context())
		w.isError(err, redlock.ErrNoQuorum)
		if !strings.Contains(err.Error(), "OOM") {
			w.Error(err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		w.isError(l.WaitReady(ctx), redlock.ErrNoQuorum, context.DeadlineExceeded)
		w.refuse("", 0, 1, 2)
		k, _ := call.gets(2 * time.Second)
		after(time.Second) // for the votes after the majority
		w.must(l.Healthy(w.Context()))
		if got := w.initials(l); got != "vvvvv" {
			w.Errorf("states %q after the masters have recovered", got)
		}
		if h.logged("grants locks again") != 3 || h.logged("locks can be acquired again") != 1 {
			w.Errorf("%q", h.logs)
		}
		w.unlock(k)
	}},
	{"an idle client", func(w *world, l *redlock.Locker, h *health) {
		w.must(l.Healthy(w.Context()))
		w.refuse("NOPERM this user has no permissions to run the 'hset' command", 0, 1, 2)
		after(time.Minute)
		err := l.Healthy(w.Context())
		w.isError(err, redlock.ErrNoQuorum)
		if !strings.Contains(err.Error(), "hset") {
			w.Error(err)
		}
		w.refuse("", 0, 1, 2)
		after(6 * time.Second) // it is tried again
		if got := w.initials(l); got != "vvvvv" {
			w.Errorf("states %q after the masters have recovered", got)
		}
	}},
	{"a minority", func(w *world, l *redlock.Locker, h *health) {
		w.refuse(outOfMemory, 0, 1)
		w.must(l.Healthy(w.Context()))
		if got := w.initials(l); got != "ffvvv" {
			w.Errorf("states %q", got)
		}
		if h.logged("master is failing", "OOM") != 2 || h.logged("no lock can") != 0 {
			w.Errorf("%q", h.logs)
		}
	}},
	{"a minority that recovers", func(w *world, l *redlock.Locker, _ *health) {
		w.refuse(outOfMemory, 0)
		w.must(l.Healthy(w.Context()))
		w.refuse("", 0)
		after(6 * time.Second)
		if got := w.initials(l); got != "vvvvv" {
			w.Errorf("states %q", got)
		}
	}},
	{"an error about one name", func(w *world, l *redlock.Locker, _ *health) {
		w.each(func(_ int, m *memory.Master) { m.Set(defaultPrefix.Fence("n"), "no number") })
		w.isError(second(l.TryLock(w.Context(), "n")), redlock.ErrNoQuorum)
		w.must(l.Healthy(w.Context()))
		if got := w.initials(l); got != "vvvvv" {
			w.Errorf("states %q", got)
		}
	}},
	{"one probe in 30 s", func(w *world, l *redlock.Locker, _ *health) {
		before := w.count("acquire")
		for range 100 {
			w.must(l.Healthy(w.Context()))
			after(100 * time.Millisecond)
		}
		if n := w.count("acquire") - before; n != 5 {
			w.Errorf("%d acquires by 100 checks within 10 s", n)
		}
	}},
	{"none beside locks", func(w *world, l *redlock.Locker, _ *health) {
		w.unlock(w.take(l, "n"))
		after(time.Second)
		before := w.count("acquire")
		w.must(l.Healthy(w.Context()))
		if n := w.count("acquire") - before; n != 0 {
			w.Errorf("%d acquires", n)
		}
	}},
	{"clocks that are off", func(w *world, l *redlock.Locker, h *health) {
		w.each(func(_ int, m *memory.Master) { m.SetClock(time.Minute, 1) }, 0, 1)
		w.stop(2)
		after(10 * time.Second)
		_, err := l.TryLock(w.Context(), "n")
		if errors.Is(err, redlock.ErrHeld) || !strings.Contains(err.Error(), "clock") {
			w.Errorf("TryLock: %v", err)
		}
		err = l.Healthy(w.Context())
		w.isError(err, redlock.ErrNoQuorum)
		if !strings.Contains(err.Error(), "clock") {
			w.Error(err)
		}
		if got := w.initials(l); got != "ffdvv" {
			w.Errorf("states %q", got)
		}
		if h.logged("no lock can be acquired", "clock") == 0 {
			w.Errorf("%q", h.logs)
		}
	}},
}

// Masters that are connected and admitted, and grant nothing, are not healthy anywhere.
func TestHealth(t *testing.T) {
	for _, c := range healthCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				h := &health{}
				c.run(w, w.locker(h.option()), h)
			})
		})
	}
}

// A master that comes back with a wrong clock is logged as failing, and not as one that votes.
func TestVirtualAMasterThatReturnsWithAWrongClockIsLoggedOnce(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var h health
		l := w.locker(h.option())
		w.must(w.take(l, "n").Unlock(w.Context()))
		m := w.masters.Master(1)
		m.Hang()
		after(10 * time.Second)
		m.SetClock(time.Minute, 1)
		m.Resume()
		after(10 * time.Second)
		if failing, votes := h.logged("master is failing", m.Addr(), "its clock is 1m0s ahead of the median"),
			h.logged("master votes", m.Addr()); failing != 1 || votes != 0 || w.initials(l) != "vfvvv" {
			t.Errorf("%d records that it is failing, %d that it votes, states %s\n%q", failing, votes, w.initials(l), h.logs)
		}
	})
}

// The clock of one voting master jumps, and is set right again: both are logged once.
func TestVirtualAWrongClockIsLogged(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var h health
		l := w.locker(h.option())
		w.must(w.take(l, "n").Unlock(w.Context()))
		w.masters.Master(1).SetClock(time.Minute, 1)
		after(10 * time.Second)
		if n := h.logged("master is failing", w.masters.Master(1).Addr(), "clock"); n != 1 || w.initials(l) != "vfvvv" {
			t.Errorf("%d records about the clock, states %s", n, w.initials(l))
		}
		w.masters.Master(1).SetClock(0, 1)
		after(10 * time.Second)
		if n := h.logged("grants locks again", w.masters.Master(1).Addr()); n != 1 || w.initials(l) != "vvvvv" {
			t.Errorf("%d records about the recovery, states %s", n, w.initials(l))
		}
	})
}

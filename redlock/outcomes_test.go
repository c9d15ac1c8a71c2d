package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A failure is a way in which a call with a function fails.
type failure struct {
	name string  // of the error in the guide
	is   []error // what the error matches
	ran  bool    // whether the function was called
	// retry is the time that RetryAfter returns, to a second; 0 if it returns false.
	retry time.Duration
	// call makes the call fail on a cluster with five masters. did is a function that records that it ran.
	call func(w *cluster, l *redlock.Locker, did func()) error
}

// do calls Do, with a function that calls work.
func do(w *cluster, l *redlock.Locker, did func(), work func(ctx context.Context, k *redlock.Lock) error,
	opts ...redlock.LockOption,
) error {
	return l.Do(w.withTimeout(10*time.Second), "n", func(ctx context.Context, k *redlock.Lock) error {
		did()
		return work(ctx, k)
	}, opts...)
}

// try calls TryDo, with a function that only records that it ran.
func try(w *cluster, l *redlock.Locker, did func(), opts ...redlock.LockOption) error {
	return l.TryDo(w.Context(), "n", func(context.Context, *redlock.Lock) error { did(); return nil }, opts...)
}

// failures has each error that the packages redlock and pool export.
var failures = []failure{
	{"ErrHeld", []error{redlock.ErrHeld}, false, redlock.DefaultTTL,
		func(w *cluster, l *redlock.Locker, did func()) error {
			must(w.locker().Lock(w.Context(), "n"))(w)
			return try(w, l, did)
		}},
	{"ErrNoQuorum", []error{redlock.ErrNoQuorum, redlock.ErrQuarantine}, false, 26 * time.Second,
		func(w *cluster, l *redlock.Locker, did func()) error {
			w.restart(false, 0, 1, 2) // the quarantine lasts 30 s
			after(4 * time.Second)
			return try(w, l, did)
		}},
	{"pool.ErrDown", []error{redlock.ErrNoQuorum, pool.ErrDown}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			w.stop(0, 1, 2)
			return try(w, l, did)
		}},
	{"pool.ErrTimeout", []error{redlock.ErrNoQuorum, pool.ErrTimeout}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			w.hang(0, 1, 2)
			after(8 * time.Second)
			return try(w, l, did)
		}},
	{"pool.ErrRefused", []error{redlock.ErrNoQuorum, pool.ErrRefused}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			w.each(func(_ int, m *memory.Master) { m.SetRole("slave"); m.CutConnections() }, 0, 1, 2)
			after(8 * time.Second)
			return try(w, l, did)
		}},
	{"ErrOverloaded", []error{redlock.ErrOverloaded, redlock.ErrNoQuorum}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			w.scriptTime(4 * time.Millisecond)
			ctx := w.withTimeout(7 * time.Second)
			for i := range 4000 {
				go func() { _, _ = l.Lock(ctx, fmt.Sprint(i)) }()
			}
			synctest.Wait()
			defer l.Close()
			return try(w, l, did)
		}},
	{"context.DeadlineExceeded", []error{redlock.ErrHeld, context.DeadlineExceeded}, false, 7666 * time.Millisecond,
		func(w *cluster, l *redlock.Locker, did func()) error {
			must(w.locker().Lock(w.Context(), "n"))(w)
			return do(w, l, did, nothing)
		}},
	{"context.Canceled", []error{context.Canceled}, false, 0,
		func(_ *cluster, l *redlock.Locker, _ func()) error { return l.Do(deadContext(), "n", nothing) }},
	{"ErrClosed", []error{redlock.ErrClosed}, false, 0, func(w *cluster, l *redlock.Locker, did func()) error {
		w.must(l.Close())
		return try(w, l, did)
	}},
	{"ErrClosed", []error{redlock.ErrClosed, pool.ErrClosed}, true, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			return do(w, l, did, func(context.Context, *redlock.Lock) error { go l.Close(); after(1); return nil })
		}},
	{"ErrLost", []error{redlock.ErrLost}, true, 0, func(w *cluster, l *redlock.Locker, did func()) error {
		return do(w, l, did, func(ctx context.Context, _ *redlock.Lock) error {
			w.masters.Lose("n")
			<-ctx.Done()
			return nil
		})
	}},
	{"ErrMaxHold", []error{redlock.ErrMaxHold, redlock.ErrLost}, true, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			return do(w, l, did, func(ctx context.Context, _ *redlock.Lock) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}, redlock.WithMaxHold(time.Second))
		}},
	{"ErrReleased", []error{redlock.ErrReleased}, true, 0, func(w *cluster, l *redlock.Locker, did func()) error {
		return do(w, l, did, func(ctx context.Context, k *redlock.Lock) error {
			return errors.Join(k.Unlock(ctx), k.Unlock(ctx))
		})
	}},
	{"ErrExported", []error{redlock.ErrExported}, true, 0, func(w *cluster, l *redlock.Locker, did func()) error {
		return do(w, l, did, func(_ context.Context, k *redlock.Lock) error {
			must(k.Export())(w)
			return k.Extend(w.Context())
		})
	}},
	{"ErrReentry", []error{redlock.ErrReentry}, false, 0, func(w *cluster, l *redlock.Locker, _ func()) error {
		return l.DoAll(must(l.Lock(w.Context(), "n"))(w).Context(w.Context()), []string{"n", "o"}, nothing)
	}},
	{"ErrKind", []error{redlock.ErrKind}, false, 0, func(w *cluster, l *redlock.Locker, did func()) error {
		must(l.RWLock("n").RLock(w.Context()))(w)
		return try(w, l, did)
	}},
	{"ErrTTLTooLong", []error{redlock.ErrTTLTooLong, redlock.ErrInvalid}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error {
			return try(w, l, did, redlock.WithTTL(time.Minute))
		}},
	{"ErrInvalid", []error{redlock.ErrInvalid, pool.ErrInvalid}, false, 0,
		func(w *cluster, l *redlock.Locker, did func()) error { return try(w, l, did, redlock.WithTTL(-1)) }},
	{"ErrTTLTooLong", []error{redlock.ErrTTLTooLong, redlock.ErrNoQuorum}, false, 0,
		func(w *cluster, _ *redlock.Locker, did func()) error {
			return try(w, w.locker(redlock.WithMaxTTL(time.Hour)), did, redlock.WithTTL(time.Minute))
		}},
	{"ErrMasterList", []error{redlock.ErrMasterList, redlock.ErrNoQuorum}, false, 0,
		func(w *cluster, _ *redlock.Locker, did func()) error {
			return try(w, w.newLocker(w.poolOf(0, 1, 2)), did)
		}},
	{name: "ErrTokensExhausted"}, // not before the year 2255; TestFailuresBecomeOneError has it
}

// Each error that a program may get says whether the function ran and when another try makes sense, also when a Do of
// another name has it from its function. The guide names each.
func TestErrorsOfAProgram(t *testing.T) {
	table := section(t, "../docs/guide.md", "Errors in your program")
	known := map[string]bool{}
	for i, c := range failures {
		known[c.name] = true
		if !strings.Contains(table, "`"+c.name+"`") {
			t.Errorf("the table in the guide does not name %s", c.name)
		}
		if c.call == nil {
			continue
		}
		subtest(t, fmt.Sprint(i, c.name), 5, func(w *cluster) {
			calls := 0
			err := c.call(w, w.locker(), func() { calls++ })
			if err == nil {
				w.Fatal("the call succeeded")
			}
			w.check(&c, err)
			equal(w, calls > 0, c.ran, "the function was called")
			equal(w, redlock.NotRun(err), !c.ran, "NotRun")
			w.inTable(table, &c, err)
			other := w.elsewhere()
			outer := other.Do(w.Context(), "other", func(context.Context, *redlock.Lock) error {
				return other.Semaphore("slots", 2).Do(w.Context(), func(context.Context, *redlock.Lock) error {
					return errors.Join(io.EOF, other.RWLock("shared").DoRead(w.Context(), func(context.Context, *redlock.Lock) error {
						return fmt.Errorf("in a function: %w", err)
					}))
				})
			})
			w.check(&c, outer)
			w.isError(outer, io.EOF)
			equal(w, redlock.NotRun(outer), false, "NotRun of the outer Do")
			equal(w, redlock.NotRun(errors.Join(err, outer)), false, "NotRun of both")
		})
	}
	for _, file := range []string{"errors.go", "../pool/pool.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^\t(Err\w+) += `).FindAllStringSubmatch(string(text), -1) {
			if !known[name[1]] && !known["pool."+name[1]] {
				t.Errorf("no failure with %s of %s", name[1], file)
			}
		}
	}
}

// inTable fails the test unless the row of the table in the guide says about c what the error shows.
func (w *cluster) inTable(table string, c *failure, err error) {
	w.Helper()
	row := regexp.MustCompile("(?m)^\\| [^:\n]*`" + regexp.QuoteMeta(c.name) + "`.*").FindString(table)
	cells := strings.Split(row, " | ")
	if len(cells) != 5 {
		w.Fatalf("the row of %s has %d cells: %s", c.name, len(cells), row)
	}
	status, level := answerTo(err)
	again := "RetryAfter|as for"
	if c.retry == 0 {
		again = ""
	}
	for n, want := range []string{c.name, map[bool]string{true: "yes", false: "no"}[c.ran], again, fmt.Sprint(status),
		strings.ToLower(level.String())} {
		if !regexp.MustCompile(want).MatchString(cells[n]) {
			w.Errorf("the table of the guide has %q for %s, want %q: %v", cells[n], c.name, want, err)
		}
	}
}

// elsewhere returns a Locker over a master that is not part of the cluster.
func (w *cluster) elsewhere() *redlock.Locker {
	other := &cluster{tester: w.tester, masters: memory.New(1)}
	other.wire = &wire{masters: other.masters}
	w.Cleanup(other.masters.Close)
	return other.locker()
}

// check fails the test unless err is as c says.
func (w *cluster) check(c *failure, err error) {
	w.Helper()
	w.isError(err, c.is...)
	if again, ok := redlock.RetryAfter(err); ok != (c.retry > 0) || (again-c.retry).Abs() > time.Second {
		w.Errorf("RetryAfter returned %v, %v; want %v: %v", again, ok, c.retry, err)
	}
	var e *redlock.LockError
	if !errors.As(err, &e) {
		if !errors.Is(err, redlock.ErrInvalid) && !errors.Is(err, redlock.ErrClosed) {
			w.Errorf("no LockError in %v", err)
		}
		return
	}
	logged := fmt.Sprint(e.LogValue())
	for _, want := range []string{
		"op=" + string(e.Op), "lock=" + e.Name, "outcome=" + redlock.Outcome(e), "reason=" + string(e.Op) + " ",
	} {
		if !strings.Contains(logged, want) {
			w.Errorf("the log has %s, want %s", logged, want)
		}
	}
}

// section returns the section of a Markdown file with this title.
func section(t *testing.T, file, title string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, title)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

// A LockError that a test of a user makes works like one of this package.
func TestLockErrorOfAUser(t *testing.T) {
	err := error(&redlock.LockError{Op: redlockinfo.OpLock, Name: "n", Holder: "h"})
	if text := err.Error(); !strings.Contains(text, `lock "n"`) || !strings.Contains(text, `held by "h"`) {
		t.Errorf("the text is %q", text)
	}
	if errors.Is(err, redlock.ErrHeld) || redlock.NotRun(err) || redlock.Outcome(err) != "other" {
		t.Errorf("the outcome is %s", redlock.Outcome(err))
	}
	if after, known := redlock.RetryAfter(err); known {
		t.Errorf("RetryAfter is %v", after)
	}
	if text := fmt.Sprint(slog.AnyValue(err).Resolve()); !strings.Contains(text, "holder=h") {
		t.Errorf("the log has %s", text)
	}
}

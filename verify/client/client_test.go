package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang is the maximum time of everything that must happen by itself.
const hang = 2 * time.Minute

// A python is a process that runs worker.py.
type python struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs Linux and python3, for the client in Python: apt-get install python3")
	}
}

// servers starts and admits n masters, and returns them with their URLs and a context for the test.
func servers(t *testing.T, n int) (list []*redisproc.Server, urls []string, ctx context.Context) {
	t.Helper()
	needPython(t)
	list = redistest.Test(t, n, redisproc.Config{})
	urls, ctx = admit(t, list)
	return list, urls, ctx
}

func admit(t *testing.T, list []*redisproc.Server) (urls []string, ctx context.Context) {
	t.Helper()
	for _, s := range list {
		urls = append(urls, s.URL())
	}
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	must.Do(t, redlocktest.Admit(ctx, urls...))
	return urls, ctx
}

// start starts a client in Python with variables of its environment, and waits until all masters count for it.
func start(t *testing.T, urls []string, env ...string) *python {
	t.Helper()
	args := []string{"-B", "worker.py", "../../internal/scripts"}
	for _, u := range urls {
		args = append(args, strings.TrimPrefix(u, "redis://"))
	}
	cmd := exec.Command("python3", args...)
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), env...)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the client in Python: %v", err)
		}
	})
	p := &python{t, in, bufio.NewScanner(out)}
	redistest.Eventually(t, "all masters count", func() bool { return p.do("votes") == int64(len(urls)) })
	return p
}

// ask sends a command without waiting for the reply.
func (p *python) ask(format string, args ...any) {
	p.t.Helper()
	must.Get(fmt.Fprintf(p.in, format+"\n", args...))(p.t)
}

// reply returns the reply to a command.
func (p *python) reply() int64 {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the client in Python has ended: %v", p.out.Err())
	}
	return must.Get(strconv.ParseInt(p.out.Text(), 10, 64))(p.t)
}

func (p *python) do(format string, args ...any) int64 {
	p.t.Helper()
	p.ask(format, args...)
	return p.reply()
}

// open returns a Locker that is connected to all masters.
func open(ctx context.Context, t *testing.T, urls []string, opts ...pool.Option) *redlock.Locker {
	t.Helper()
	masters := must.Get(pool.Open(urls, opts...))(t)
	t.Cleanup(func() { _ = masters.Close() })
	l, err := redlock.New(masters, redlock.WithTTL(time.Second), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, l.WaitReady(ctx))
	return l
}

// A Locker of the library and a client in Python exclude each other, and wait for each other. Each waiter leaves the
// queues when it has won.
func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	_, urls, ctx := servers(t, 5)
	// On a busy machine a message that is not answered within half a second would leave a waiter behind for 20 s.
	p, l := start(t, urls, "REDLOCK_TIMEOUT=5"), open(ctx, t, urls, pool.WithTimeout(5*time.Second))
	waiting := func(n int) func() bool {
		return func() bool {
			in, err := l.Inspect(ctx, "n")
			return err == nil && len(in.Waiters) == n
		}
	}
	last := int64(0)
	grows := func(token int64) {
		t.Helper()
		if token <= last {
			t.Fatalf("the token %d follows %d", token, last)
		}
		last = token
	}
	for range 3 {
		lock := must.Get(l.Lock(ctx, "n"))(t)
		grows(lock.Token())
		if token := p.do("acquire n 30000 0.5"); token != 0 {
			t.Fatalf("the client in Python has acquired a held name with the token %d", token)
		}
		redistest.Await(t, 15*time.Second, func() string { // the masters drop it after 20 s
			if !waiting(0)() {
				return "a waiter that has given up has not left"
			}
			return ""
		})
		p.ask("acquire n 30000 60")
		redistest.Eventually(t, "the client in Python waits", waiting(1))
		must.Do(t, lock.Unlock(ctx))
		grows(p.reply())
		if _, err := l.TryLock(ctx, "n"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatalf("TryLock of a held name returned %v", err)
		}
		if p.do("extend n") != 1 {
			t.Fatal("the extension was not confirmed")
		}
		next := make(chan *redlock.Lock, 1)
		go func() {
			lock, err := l.Lock(ctx, "n")
			if err != nil {
				t.Error(err)
			}
			next <- lock
		}()
		redistest.Eventually(t, "the Locker waits", waiting(1))
		if p.do("release n") != 1 {
			t.Fatal("the release was not confirmed")
		}
		if lock = <-next; lock == nil {
			return
		}
		grows(lock.Token())
		must.Do(t, lock.Unlock(ctx))
		redistest.Eventually(t, "the queues are empty", waiting(0))
	}
}

// A client in Python holds a name on three masters, and two of them restart without their data. No client can acquire
// the name as long as the lock is valid, because the two masters do not count without a record.
func TestRestartedMastersDoNotCount(t *testing.T) {
	t.Parallel()
	list, urls, ctx := servers(t, 3)
	holder, rival, l := start(t, urls), start(t, urls), open(ctx, t, urls)
	first := holder.do("acquire n 30000 10")
	if first == 0 {
		t.Fatal("the client in Python could not acquire a free name")
	}
	for _, s := range list[:2] {
		must.Do(t, s.Restart(ctx))
	}
	redistest.Eventually(t, "one master counts", func() bool { return rival.do("votes") == 1 })
	token := rival.do("acquire n 1000 0.5")
	_, err := l.TryLock(ctx, "n")
	if left := holder.do("left n"); left > 0 && (token != 0 || err == nil) {
		t.Fatalf("a second holder: the token of the rival is %d, TryLock returned %v; the first lock is valid for %d us more",
			token, err, left)
	}
	if holder.do("extend n") != 0 {
		t.Error("the extension was confirmed by one of three masters")
	}
	if !long.Enabled() {
		return
	}
	redistest.Eventually(t, "the quarantines have ended", func() bool { return rival.do("votes") == 3 })
	if token := rival.do("acquire n 1000 60"); token <= first {
		t.Errorf("after the quarantines, the token %d follows %d", token, first)
	}
}

// The clock of a master jumps forward by 20 s, and back. The client in Python has seen the jump, and does not count the
// master as long as the master shows the record from before: its keys may have expired early.
func TestMasterWithLeaptClockDoesNotCount(t *testing.T) {
	t.Parallel()
	needPython(t)
	shifted := redistest.Shifted(t, 3, redisproc.Config{})
	urls, ctx := admit(t, []*redisproc.Server{shifted[0].Server, shifted[1].Server, shifted[2].Server})
	p := start(t, urls)
	shifted[0].Shift(20 * time.Second)
	redistest.Eventually(t, "the clock is ahead", func() bool { return p.do("ahead") > 15e6 })
	redistest.Eventually(t, "two masters count", func() bool { return p.do("votes") == 2 })
	shifted[0].Shift(0)
	redistest.Eventually(t, "the clock is right", func() bool { return p.do("ahead") < 5e6 })
	if n := p.do("votes"); n != 2 {
		t.Fatalf("%d masters count after the clock of one has jumped and come back, want 2", n)
	}
	if token := p.do("acquire n 30000 60"); token == 0 {
		t.Fatal("two of three masters have not granted a free name")
	}
	must.Do(t, shifted[1].Restart(ctx))
	redistest.Eventually(t, "one master counts", func() bool { return p.do("votes") == 1 })
}

// Two clients in Python and two Lockers use the same names, while masters restart without their data. The history of
// all four has one holder at a time, and tokens that grow.
func TestHistoryWithRestarts(t *testing.T) {
	t.Parallel()
	list, urls, ctx := servers(t, 5)
	dir := t.TempDir()
	pythons := []*python{start(t, urls), start(t, urls)}
	lockers := []*redlock.Locker{open(ctx, t, urls), open(ctx, t, urls)}
	var counts [2]atomic.Int64
	work, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for i, l := range lockers {
		rec := must.Get(history.NewRecorder(dir, fmt.Sprint("go-", i)))(t)
		defer rec.Close()
		for j := range 3 {
			defer func() { stop(); wg.Wait() }() // before rec is closed
			wg.Go(func() {
				for turn := 0; work.Err() == nil && !t.Failed(); turn++ {
					hold := fmt.Sprintf("go-%d.%d.%d", i, j, turn)
					name, lock := fmt.Sprint("shared-", turn%2), l.Lock
					if j == 2 { // does not wait, so that votes are split
						name, lock = "shared-2", l.TryLock
					}
					held, err := hold1(work, rec, lock, name, hold)
					if err != nil {
						t.Errorf("%s: %v", hold, err)
					}
					if held {
						counts[i].Add(1)
					}
				}
			})
		}
	}
	for i, p := range pythons {
		p.do("work %s python-%d", dir, i)
	}
	holds := func() (n [4]int64) {
		return [4]int64{counts[0].Load(), counts[1].Load(), pythons[0].do("holds"), pythons[1].do("holds")}
	}
	progress := func() {
		t.Helper()
		before := holds()
		redistest.Eventually(t, "each client has acquired locks", func() bool {
			now := holds()
			for i := range now {
				if now[i] < before[i]+20 {
					return t.Failed()
				}
			}
			return true
		})
	}
	progress()
	if err := list[4].Pause(); err != nil { // it executes old messages later
		t.Fatal(err)
	}
	progress()
	must.Do(t, list[4].Resume())
	redistest.Eventually(t, "the paused master counts", func() bool { return pythons[0].do("votes") == 5 })
	for i, s := range list[:2] {
		must.Do(t, s.Restart(ctx))
		redistest.Eventually(t, "one master less counts", func() bool { return pythons[0].do("votes") == int64(4-i) })
		progress()
	}
	if long.Enabled() {
		redistest.Eventually(t, "the quarantines have ended", func() bool { return pythons[0].do("votes") == 5 })
		must.Do(t, list[2].Restart(ctx))
		progress()
	}
	stop()
	wg.Wait()
	for _, p := range pythons {
		p.do("stop")
	}
	events := must.Get(history.Read(dir))(t)
	if err := history.Check(events); err != nil {
		t.Error(err)
	}
	t.Logf("holds of each client: %d", holds())
}

// An acquiring is Locker.Lock or Locker.TryLock.
type acquiring = func(context.Context, string, ...redlock.LockOption) (*redlock.Lock, error)

// hold1 acquires a name, holds it for a moment and releases it. It reports whether it has held the name. The error is
// nil if the fault of a master explains the failure.
func hold1(ctx context.Context, rec *history.Recorder, acquire acquiring, name, hold string) (bool, error) {
	bound, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lock, err := rec.Call(history.Event{Op: history.Lock, Name: name, Hold: hold}, func() (*redlock.Lock, error) {
		return acquire(bound, name)
	})
	if err != nil {
		<-time.After(time.Duration(rand.IntN(10)) * time.Millisecond)
	} else {
		held, done := context.WithTimeout(lock.Context(ctx), 2*time.Millisecond)
		<-held.Done()
		done()
		over, end := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer end()
		err = rec.Unlock(lock, hold, func() error { return lock.Unlock(over) })
	}
	if err != nil && history.KindOf(err) == history.KindOther {
		return lock != nil, err
	}
	return lock != nil, nil
}

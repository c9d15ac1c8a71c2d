package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
)

// turnsRole locks one name a.Count times in each of several goroutines, all of them waiting for as long as it takes. It
// records a history. With a.Stay the second goroutine keeps its second hold, and says so.
func turnsRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	rec, err := history.NewRecorder(a.Dir, fmt.Sprint(os.Getpid()))
	if err != nil {
		return err
	}
	defer rec.Close()
	errs := make([]error, a.Goroutines)
	var wg sync.WaitGroup
	for g := range a.Goroutines {
		wg.Go(func() {
			for turn := 0; turn < a.Count && errs[g] == nil; turn++ {
				stay := a.Stay && g == 1 && turn == 1
				errs[g] = takeTurn(ctx, l, rec, a.Name, fmt.Sprintf("%d.%d.%d", os.Getpid(), g, turn), stay)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func takeTurn(ctx context.Context, l *redlock.Locker, rec *history.Recorder, name, hold string, stay bool) error {
	lock, err := rec.Call(history.Event{Op: history.Lock, Name: name, Hold: hold}, func() (*redlock.Lock, error) {
		return l.Lock(ctx, name)
	})
	if err != nil {
		return err
	}
	if stay {
		worker.Say("staying %d", lock.Token())
		<-ctx.Done()
		return lock.Unlock(ctx)
	}
	rest(ctx, time.Millisecond)
	return rec.Unlock(lock, hold, func() error { return lock.Unlock(ctx) })
}

// firstToStay waits until one of the workers keeps its hold, and returns it, the token, and the others. The masters
// decide which worker it is.
func firstToStay(t *testing.T, of []*worker.Process) (w *worker.Process, token string, others []*worker.Process) {
	t.Helper()
	if len(of) == 1 {
		return of[0], of[0].Line("staying"), nil
	}
	timer := time.NewTimer(hang)
	defer timer.Stop()
	for {
		var text string
		w, others = of[0], of[1:]
		select {
		case text = <-of[0].Lines:
		case text = <-of[1].Lines:
			w, others = of[1], of[:1]
		case <-timer.C:
			t.Fatalf("no worker keeps its hold after %v", hang)
		}
		if rest, found := strings.CutPrefix(text, "staying"); found {
			return w, strings.TrimSpace(rest), others
		}
	}
}

// H40, H41, H42: eight processes of eight goroutines lock one name repeatedly, and two of them are killed while they
// hold it, with one goroutine inside and seven waiting. Every goroutine of the others gets each of its turns, one at a
// time, with growing tokens. After the last turn the masters have no waiters.
func TestEightProcessesGetTheirTurnsThoughTwoHoldersAreKilled(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it waits for the TTLs of two processes that are killed")
	}
	const processes, goroutines, turns = 8, 8, 25
	f := newDeployment(t, 5)
	f.admitted()
	dir := t.TempDir()
	var workers []*worker.Process
	for i := range processes {
		workers = append(workers, startWorker(t, "turns", workerArgs{
			URLs: f.urls, Name: "n", TTL: 2 * time.Second, Goroutines: goroutines, Count: turns, Dir: dir, Stay: i < 2,
		}))
	}
	stays := workers[:2]
	for len(stays) > 0 {
		var w *worker.Process
		var said string
		w, said, stays = firstToStay(t, stays)
		token := number(t, said)
		if id, on := f.holder("n"); on < 3 {
			t.Errorf("%q holds it on %d masters while the holder of token %d is killed", id, on, token)
		}
		if err := w.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		w.Join()
	}
	for _, w := range workers[2:] {
		w.FinishAfter("done", longHang)
	}
	events := must[[]history.Event](t)(history.Read(dir))
	holds := must[[]*history.Hold](t)(history.Holds(events))
	if err := history.Check(holds); err != nil {
		t.Error(err)
	}
	released := 0
	for _, h := range holds {
		if h.Left != history.Never {
			released++
		}
	}
	if least := (processes - 2) * goroutines * turns; released < least {
		t.Errorf("%d holds were released, of %d that had to be", released, least)
	}
	t.Logf("%d holds, %d of them released", len(holds), released)
	f.nobodyWaits(hang)
	f.nobodyListens(hang)
}

// holder returns the client that has name on most masters, and their number.
func (f *deployment) holder(name string) (id string, on int) {
	f.t.Helper()
	count := map[string]int{}
	for i := range f.servers {
		fields, err := redis.StringMap(f.do(i, "HGETALL", scripts.Prefix(redlock.DefaultPrefix).Lock(name)), nil)
		if err != nil {
			f.t.Fatal(err)
		}
		for one := range fields {
			if count[one]++; count[one] > on {
				id, on = one, count[one]
			}
		}
	}
	return id, on
}

// nobodyWaits waits until no master has any keys but fences and its record.
func (f *deployment) nobodyWaits(bound time.Duration) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, bound, func() string {
			keys, err := redis.Strings(f.do(i, "KEYS", "*"), nil)
			keys = slices.DeleteFunc(keys, func(k string) bool {
				return k == admissionKey || strings.HasSuffix(k, "}:fence")
			})
			if err != nil || len(keys) > 0 {
				return fmt.Sprintf("master %d has %q (%v)", i, keys, err)
			}
			return ""
		})
	}
}

// nobodyListens waits until no master has any listening client.
func (f *deployment) nobodyListens(bound time.Duration) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, bound, func() string {
			channels, err := redis.Strings(f.do(i, "PUBSUB", "CHANNELS"), nil)
			if err != nil || len(channels) > 0 {
				return fmt.Sprintf("master %d has listeners of %q (%v)", i, channels, err)
			}
			return ""
		})
	}
}

// A hundred goroutines of three Lockers wait for a name on real masters, and all give up. Those of the holder's wait in
// its local queue, the others on the masters. They leave no keys, and the inboxes are closed when they have not been
// used for a while.
func TestWaitersThatGiveUpLeaveNothingOnRealMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	holder := f.admitted(redlock.WithTTL(30 * time.Second))
	lock := held(t)(holder.Lock(bounded(t), "n"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waiting sync.WaitGroup
	for g := range 100 {
		l := holder
		if g < 2 {
			l = f.locker()
		}
		waiting.Go(func() {
			if _, err := l.Lock(ctx, "n", redlock.WithPriority(g%3)); !errors.Is(err, context.Canceled) {
				t.Error(err) // the test does not depend on whether the call knows that the name is held
			}
		})
	}
	for i := range f.servers {
		eventually(t, hang, func() string {
			n, err := redis.Int(f.do(i, "ZCARD", scripts.Prefix(redlock.DefaultPrefix).Queue("n")), nil)
			if err != nil || n < 2 {
				return fmt.Sprintf("%d are queued on master %d (%v)", n, i, err)
			}
			return ""
		})
	}
	cancel()
	waiting.Wait()
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	f.nobodyWaits(hang)
	if long.Enabled() { // the inboxes are kept for ten seconds
		f.nobodyListens(2 * hang)
	}
}

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

const (
	workTTL   = 1500 * time.Millisecond
	workGuard = 2 * time.Second
	workNames = 5
)

// workloadRole acquires locks of a few names in several goroutines until it is asked to end. For each hold it appends
// to the name's file, and after each line it makes sure that the lock was still valid:
//
//	enter <hold> <token>    after the lock was acquired
//	leave <hold>            before it is released
//	valid <hold>            only if the lock was valid after "leave" had been written
//
// So both lines of a hold that is marked valid were written while it was valid: lines of two such holds of a name must
// not interleave, regardless of lost or late messages.
func workloadRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	files := make([]*os.File, a.Names)
	for i := range files {
		var err error
		if files[i], err = appendTo(filepath.Join(a.Dir, fmt.Sprint("n", i))); err != nil {
			return err
		}
		defer files[i].Close()
	}
	errs := make([]error, a.Goroutines)
	var wg sync.WaitGroup
	for g := range a.Goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(a.Seed, uint64(g)))
			for turn := 0; ctx.Err() == nil && errs[g] == nil; turn++ {
				name := rnd.IntN(a.Names)
				errs[g] = workOnce(ctx, l, files[name], fmt.Sprint("n", name), fmt.Sprintf("%d.%d.%d", os.Getpid(), g, turn), rnd)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func workOnce(ctx context.Context, l *redlock.Locker, file *os.File, name, hold string, rnd *rand.Rand) error {
	try, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	lock, err := l.Lock(try, name,
		redlock.WithDelays(redlock.Delays{Fixed: 2 * time.Millisecond, Random: 20 * time.Millisecond}))
	if err != nil {
		return unexpected(err)
	}
	if _, err := fmt.Fprintf(file, "enter %s %d\n", hold, lock.Token()); err != nil {
		return err
	}
	timer := time.NewTimer(time.Duration(rnd.ExpFloat64() * float64(2*time.Millisecond)))
	defer timer.Stop()
	if rnd.IntN(100) == 0 {
		timer.Reset(workTTL) // some holds last long enough to need extensions
	}
	select {
	case <-timer.C:
	case <-lock.Done():
	}
	if lock.Err() == nil && lock.Remaining() > 0 {
		if _, err := fmt.Fprintf(file, "leave %s\n", hold); err != nil {
			return err
		}
		if lock.Err() == nil && lock.Remaining() > 0 {
			if _, err := fmt.Fprintf(file, "valid %s\n", hold); err != nil {
				return err
			}
		}
	}
	return unexpected(lock.Unlock(ctx))
}

// unexpected returns err unless faults of masters explain it.
func unexpected(err error) error {
	for _, known := range []error{
		redlock.ErrNoQuorum, redlock.ErrHeld, redlock.ErrTooSlow, redlock.ErrLost, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// Four processes of eight goroutines lock five names over five masters, while masters hang, die and come back empty,
// one at a time and all at once, and the processes themselves are stopped past their TTL. Two holds of a name are never
// valid at once, tokens grow with each hold, work continues after each fault, every process ends, and no keys are left.
//
// Masters that restart empty at once are admitted again under the condition of Admit: when no hold can be valid any
// more.
func TestMutualExclusionAndTokensOverAllFaults(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it keeps all processors busy for ten seconds")
	}
	f := newFleet(t, 5)
	l := f.admitted(redlock.WithMaxTTL(workGuard), redlock.WithTTL(workTTL))
	dir, seed := t.TempDir(), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var workers []*worker
	for i := range 4 {
		workers = append(workers, startWorker(t, "workload", workerArgs{
			URLs: f.urls, Timeout: transport.DefaultTimeout, TTL: workTTL, Guard: workGuard,
			Names: workNames, Goroutines: 8, Dir: dir, Seed: seed + uint64(i),
		}))
	}
	faults := faults{f: f, l: l, workers: workers, rnd: rand.New(rand.NewPCG(seed, 99)), dir: dir}
	faults.progress("the start")
	rounds := 1
	if longRun() {
		rounds = 20
	}
	for range rounds {
		faults.oneAtATime()
		faults.all()
	}
	for _, w := range workers {
		w.finish()
	}
	f.noLocks(2*workTTL + hang)
	checkHistories(t, dir)
}

// faults injects the faults of a workload.
type faults struct {
	f       *fleet
	l       *redlock.Locker
	workers []*worker
	rnd     *rand.Rand
	dir     string
}

// oneAtATime makes every master hang or restart empty in turn, and stops one process.
func (x *faults) oneAtATime() {
	for _, i := range x.rnd.Perm(5) {
		switch x.rnd.IntN(3) {
		case 0:
			x.f.pause(i)
			x.wait(time.Duration(x.rnd.IntN(900)) * time.Millisecond)
			x.f.resume(i)
		case 1:
			x.f.restart(i)
			x.f.hasten(workGuard, i)
			x.wait(time.Duration(x.rnd.IntN(300)) * time.Millisecond)
		case 2:
			w := x.workers[x.rnd.IntN(len(x.workers))]
			w.signal(stopSignal)
			x.wait(workTTL/2 + time.Duration(x.rnd.IntN(int(workTTL))))
			w.signal(continueSignal)
		}
	}
	x.progress("faults of one master at a time")
}

// all makes all masters hang, and then restart empty.
func (x *faults) all() {
	x.f.pause(0, 1, 2, 3, 4)
	x.wait(time.Duration(x.rnd.IntN(1000)) * time.Millisecond)
	x.f.resume(0, 1, 2, 3, 4)
	x.progress("all masters had hung")
	x.f.kill(0, 1, 2, 3, 4)
	x.f.restart(0, 1, 2, 3, 4)
	x.wait(workTTL) // now no hold is valid, and no client can have acquired one
	x.f.admit(x.l)
	x.progress("all masters had restarted empty")
}

// wait lets the workload run under the current fault.
func (x *faults) wait(d time.Duration) { <-time.After(d) }

// progress waits until there are new valid holds of every name.
func (x *faults) progress(after string) {
	x.f.t.Helper()
	before := x.valid()
	eventually(x.f.t, 2*hang, func() string {
		for name, n := range x.valid() {
			if n <= before[name] {
				return fmt.Sprintf("no hold of n%d since %s (%s)", name, after, states(x.l))
			}
		}
		return ""
	})
}

func (x *faults) valid() []int {
	counts := make([]int, workNames)
	for i := range counts {
		text, err := os.ReadFile(filepath.Join(x.dir, fmt.Sprint("n", i)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			x.f.t.Fatal(err)
		}
		counts[i] = strings.Count(string(text), "valid ")
	}
	return counts
}

// checkHistories reads the file of each name.
func checkHistories(t *testing.T, dir string) {
	t.Helper()
	for i := range workNames {
		text := must[[]byte](t)(os.ReadFile(filepath.Join(dir, fmt.Sprint("n", i))))
		valid, all, err := checkHistory(string(text))
		if err != nil {
			t.Errorf("n%d: %v", i, err)
		}
		t.Logf("n%d: %d of %d holds were valid to the end", i, valid, all)
	}
}

// checkHistory returns an error if the history of one name has valid holds that overlap, or a token that did not grow.
func checkHistory(text string) (valid, all int, err error) {
	proven := make(map[string]bool)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if hold, ok := strings.CutPrefix(line, "valid "); ok {
			proven[hold] = true
		}
	}
	inside, last := "", int64(0)
	for n, line := range lines {
		var what, hold string
		var token int64
		if _, err := fmt.Sscan(line+" 0", &what, &hold, &token); err != nil {
			return valid, all, fmt.Errorf("line %d is %q: %w", n+1, line, err)
		}
		if what == "enter" {
			all++
		}
		if !proven[hold] {
			continue
		}
		switch what {
		case "enter":
			if inside != "" {
				return valid, all, fmt.Errorf("line %d: %s enters while %s is inside, and both were valid", n+1, hold, inside)
			}
			if token <= last {
				return valid, all, fmt.Errorf("line %d: %s has token %d after %d", n+1, hold, token, last)
			}
			inside, last = hold, token
			valid++
		case "leave":
			if inside != hold {
				return valid, all, fmt.Errorf("line %d: %s leaves, and %q is inside", n+1, hold, inside)
			}
			inside = ""
		}
	}
	return valid, all, nil
}

// checkHistory detects the violations that it is for.
func TestTheCheckerOfHistoriesFindsViolations(t *testing.T) {
	good := "enter a 1\nleave a\nvalid a\nenter b 2\nenter c 3\nleave c\nleave b\nvalid c\nenter d 7\n"
	if valid, all, err := checkHistory(good); err != nil || valid != 2 || all != 4 {
		t.Errorf("a good history: %d of %d, %v", valid, all, err)
	}
	for name, text := range map[string]string{
		"overlap":           "enter a 1\nenter b 2\nleave a\nvalid a\nleave b\nvalid b\n",
		"inclusion":         "enter a 1\nenter b 2\nleave b\nleave a\nvalid b\nvalid a\n",
		"token falls":       "enter a 2\nleave a\nvalid a\nenter b 1\nleave b\nvalid b\n",
		"token stays":       "enter a 2\nleave a\nenter b 2\nleave b\nvalid a\nvalid b\n",
		"not what we wrote": "nonsense\n",
	} {
		if _, _, err := checkHistory(text); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

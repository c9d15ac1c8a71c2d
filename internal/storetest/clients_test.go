//go:build linux

package storetest

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// clientEnv names the environment variable with the URLs of the masters. If it is set, the test binary runs as a
// client.
const clientEnv = "REDLOCK_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if urls := os.Getenv(clientEnv); urls != "" {
		if err := lockAgain(strings.Fields(urls), os.Args[len(os.Args)-1] == "admit"); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the scenarios mostly wait
	goleak.VerifyTestMain(m)
}

// open returns a Locker for the masters at urls.
func open(urls []string) (*redlock.Locker, error) {
	if strings.Contains(urls[len(urls)-1], "+cluster://") {
		buckets, err := pool.OpenBuckets(urls)
		if err != nil {
			return nil, err
		}
		return redlock.NewSharded(buckets, redlock.WithTTL(2*time.Second))
	}
	masters, err := pool.Open(urls)
	if err != nil {
		return nil, err
	}
	return redlock.New(masters, redlock.WithTTL(2*time.Second))
}

// names lists the locks that each client acquires. With these names, every shard of a cluster has at least one lock.
var names = strings.Fields("job-1 job-2 job-3 job-4 job-5 job-6")

// lockAgain acquires each lock repeatedly, and holds it for 50 ms each time, until the standard input is closed. For
// each hold it prints the start and the end (in ns, from the machine's clock), the token, and the name.
func lockAgain(urls []string, admit bool) error {
	locker, err := open(urls)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	if admit {
		if err := admin.Of(locker).Admit(ctx); err != nil {
			return err
		}
		fmt.Println("admitted")
	}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			for last := ""; ctx.Err() == nil; {
				if err := hold1(ctx, locker, name); err != nil && err.Error() != last {
					last = err.Error()
					fmt.Println("no", name, last)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// hold1 acquires one lock, holds it for 50 ms, and releases it.
func hold1(ctx context.Context, locker *redlock.Locker, name string) error {
	try, end := context.WithTimeout(ctx, 5*time.Second)
	lock, err := locker.Lock(try, name)
	end()
	if err != nil {
		return err
	}
	from := time.Now().UnixNano()
	select {
	case <-lock.Done():
	case <-time.After(50 * time.Millisecond):
	}
	until := min(time.Now().UnixNano(), time.Now().Add(lock.Remaining()).UnixNano())
	fmt.Println("held", from, until, lock.Token(), name)
	_ = lock.Unlock(ctx) // the check of the history finds the consequences of an error
	time.Sleep(50 * time.Millisecond)
	return nil
}

// read parses the output of a client while the client writes it.
func (p *process) read(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		var from, until, token int64
		var name string
		_, err := fmt.Sscanf(line, "held %d %d %d %s", &from, &until, &token, &name)
		p.mu.Lock()
		switch {
		case err == nil:
			p.holds = append(p.holds, &history.Hold{ID: p.name, Name: name, From: from, Until: until, Token: token})
		case line == "admitted":
			close(p.admitted)
		default:
			p.said = append(p.said, time.Now().Format("15:04:05.000 ")+line)
		}
		p.mu.Unlock()
	}
}

// A verdict is the result of the check of a history.
type verdict struct {
	holds    []*history.Hold
	overlaps []string                 // locks that two clients held at the same time
	shrunk   []string                 // tokens that did not increase
	gaps     map[string]time.Duration // by lock: the longest time without a holder
}

// judge checks the holds of all clients together.
func judge(clients ...*process) (v verdict) {
	for _, p := range clients {
		v.holds = append(v.holds, p.list()...)
	}
	slices.SortFunc(v.holds, func(a, b *history.Hold) int { return cmp.Compare(a.From, b.From) })
	v.overlaps, v.shrunk = history.Violations(v.holds)
	v.gaps = history.Gaps(v.holds)
	return v
}

// longest returns the largest gap among the names, and shortest the smallest.
func (v *verdict) longest() time.Duration  { return slices.Max(slices.Collect(maps.Values(v.gaps))) }
func (v *verdict) shortest() time.Duration { return slices.Min(slices.Collect(maps.Values(v.gaps))) }

// mustExclude fails the test if two clients held a lock at the same time, or if a token did not increase.
func (v *verdict) mustExclude(t *testing.T) {
	t.Helper()
	for _, s := range v.overlaps {
		t.Error("a lock had two holders: ", s)
	}
	for _, s := range v.shrunk {
		t.Error("a token did not increase: ", s)
	}
	t.Logf("there were %d holds; the longest times without a holder are %v", len(v.holds), v.gaps)
}

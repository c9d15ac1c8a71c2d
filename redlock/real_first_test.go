package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
)

// H55, H73: after many names have been locked, the masters have no keys but their admission records, once the fences
// have expired.
func TestNothingIsLeftOfManyNames(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it waits for a minute, until fences expire")
	}
	t.Parallel()
	names := 10_000
	if longRun() {
		names = 200_000
	}
	f := newDeployment(t, 5)
	l := f.admitted()
	const goroutines = 64
	var working sync.WaitGroup
	for g := range goroutines {
		working.Go(func() {
			for n := g; n < names; n += goroutines {
				lock, err := l.Lock(bounded(t), fmt.Sprint("name", n))
				if err == nil {
					err = lock.Unlock(bounded(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	ended := time.Now()
	kept := must[int64](t)(redis.Int64(f.do(0, "DBSIZE"), nil))
	for i := range f.servers {
		eventually(t, 80*time.Second+hang, func() string {
			f.do(i, "SCAN", 0, "COUNT", 1_000_000) // a scan makes the server delete expired keys
			n, err := redis.Int64(f.do(i, "DBSIZE"), nil)
			return problem(err, n != 1, "master %d has %d keys", i, n)
		})
		if keys := must[[]string](t)(redis.Strings(f.do(i, "KEYS", "*"), nil)); !slices.Equal(keys, []string{admissionKey}) {
			t.Errorf("master %d still has keys %q", i, keys)
		}
	}
	t.Logf("%d names: %d keys on a master at once, one %v after the last release", names, kept,
		time.Since(ended).Round(time.Second))
}

// problem describes a problem; "" if there is none.
func problem(err error, wrong bool, format string, args ...any) string {
	if err == nil && !wrong {
		return ""
	}
	return fmt.Sprintf(format, args...) + fmt.Sprint(" ", errors.Join(err))
}

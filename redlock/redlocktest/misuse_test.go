package redlocktest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A call that would silently do nothing, or not what was meant, panics and says why.
func TestMisuseIsExplained(t *testing.T) {
	locker, masters := redlocktest.NewLocker(t, 3)
	const noUnit = "a number without a unit is in nanoseconds"
	for want, call := range map[string]func(){
		`Take "n" for 60ns: must be at least 1ms; ` + noUnit:    func() { masters.Take("n", 60) },
		`Take "": the name of the lock is empty`:                func() { masters.Take("", time.Minute) },
		`Free "n": nobody holds the name, or it is a semaphore`: func() { masters.Free("n") },
		`Lose "n": nobody holds the name`:                       func() { masters.Lose("n") },
		`Delay(5ns): must be 0, or at least 10µs; ` + noUnit:    func() { masters.Master(0).Delay(5) },
		`Delay(-1s): must be 0, or at least 10µs`:               func() { masters.Master(0).Delay(-time.Second) },
		`SetClock(3ns): must be 0, or at least 10µs; ` + noUnit: func() { masters.Master(0).SetClock(-3, 1) },
		`SetClock: the rate -1 is negative`:                     func() { masters.Master(0).SetClock(0, -1) },
		`MaxTTL(60ns): must be 0, or at least 10µs; ` + noUnit:  func() { redlocktest.New(3, redlocktest.MaxTTL(60)) },
		`Shard(0, 2): `: func() { redlocktest.New(3, redlocktest.Shard(0, 2)) },
		`0 masters: the number must be at least 1`: func() { redlocktest.New(0) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "redlocktest: "+want) {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}()
			call()
		}()
	}
	for want, err := range map[string]error{
		"Admit: no URLs: name all servers": redlocktest.Admit(t.Context()),
		"Admit: the context is nil":        redlocktest.Admit(nil, "redis://localhost"), //nolint:staticcheck // the mistake
	} {
		if err == nil || err.Error() != "redlocktest: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := locker.Do(t.Context(), "n", func(context.Context, *redlock.Lock) error { return nil }); err != nil {
		t.Errorf("the masters do not work after the mistakes: %v", err)
	}
}

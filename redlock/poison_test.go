package redlock_test

import (
	"errors"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// H59: one master of five has a fence far above its clock, and asks come while another holds the name, so that they are
// refused after three votes, the poisoned one often among them. When the name is free it can be locked at once.
func TestOnePoisonedMasterDoesNotKeepANameForEver(t *testing.T) {
	for name, fence := range map[string]int64{
		"at the end of the numbers": scripts.MaxBallot - 1, "half way there": 1 << 52,
	} {
		t.Run(name, func(t *testing.T) {
			servers, p, holder := masters(t, 5)
			held, err := holder.Lock(t.Context(), "n")
			if err != nil {
				t.Fatal(err)
			}
			poison(t, servers[0].URL(), fence)
			asker := locker(t, p)
			for range 30 {
				if _, err := asker.TryLock(t.Context(), "n"); !errors.Is(err, redlock.ErrHeld) {
					t.Fatalf("while it is held: %v", err)
				}
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				lock, err := asker.Lock(t.Context(), "n", redlock.WithTries(20))
				if err != nil {
					t.Fatalf("when it is free: %v", err)
				}
				if lock.Token() >= fence {
					t.Errorf("the token %d followed the poisoned fence", lock.Token())
				}
				if err := lock.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// poison gives the name n a fence on one master, and takes its lock away there, so that the fence is what refuses.
func poison(t *testing.T, url string, fence int64) {
	t.Helper()
	c, err := redis.DialURL(url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	keys := scripts.Prefix(redlock.DefaultPrefix)
	if _, err := c.Do("DEL", keys.Lock("n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do("SET", keys.Fence("n"), fence); err != nil {
		t.Fatal(err)
	}
}

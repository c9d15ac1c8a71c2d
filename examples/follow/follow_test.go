package follow

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A program goes by three masters, then by these and three others together. Nonsense in between changes nothing, and a
// lock goes on all the while.
func TestAProgramFollowsItsFile(t *testing.T) {
	old, next := listen(t), listen(t)
	path := filepath.Join(t.TempDir(), "locks.json")
	write(t, path, redlock.Set{Masters: old})
	changed := make(chan redlock.ChangeInfo, 10)
	locker, shut, err := Open(path, redlock.WithTrace(&redlock.Trace{
		Changed: func(c redlock.ChangeInfo) { changed <- c },
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- Follow(ctx, locker, path) }()
	if c := <-changed; c.Err != nil || c.Set.Epoch != 0 {
		t.Errorf("at first: %+v", c)
	}
	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, path, redlock.Set{Epoch: 1, Masters: old, Next: next})
	if c := <-changed; c.Err != nil || c.Set.Epoch != 1 {
		t.Errorf("after the change: %+v", c)
	}
	if got := locker.Set(); got.Epoch != 1 || len(got.Next) != 3 || lock.Err() != nil {
		t.Errorf("it goes by %+v, and the lock by %v", got, lock.Err())
	}
	cancel()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(lock.Unlock(t.Context()), shut(context.Background())); err != nil {
		t.Error(err)
	}
}

// listen starts three masters, and returns their URLs.
func listen(t *testing.T) []string {
	t.Helper()
	masters := redlocktest.New(3)
	t.Cleanup(masters.Close)
	urls, err := masters.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

func write(t *testing.T, path string, set redlock.Set) {
	t.Helper()
	text, err := json.Marshal(set)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replace puts another file in the place of the one at path, as editors and config maps do.
func replace(t *testing.T, path string, set redlock.Set) {
	t.Helper()
	write(t, path+".new", set)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

// accounts creates a database with these accounts, each with the balance 100, and returns its path and the open
// database.
func accounts(t *testing.T, names ...string) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bank.db")
	db, err := open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, name := range names {
		if _, err := db.Exec(`INSERT INTO accounts VALUES (?, 100, 0)`, name); err != nil {
			t.Fatal(err)
		}
	}
	return path, db
}

// When clients move money concurrently in all directions, the sum of all accounts does not change, and no transfer
// deadlocks.
func TestTransfersInAllDirections(t *testing.T) {
	names := []string{"a", "b", "c"}
	_, db := accounts(t, names...)
	_, urls := testmasters.Start(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for p := range 4 {
		l, random := testmasters.Locker(t, urls), rand.New(rand.NewPCG(1, uint64(p)))
		wg.Go(func() {
			for range 25 {
				i := random.IntN(3)
				from, to := names[i], names[(i+1+random.IntN(2))%3]
				err := transfer(ctx, l, db, from, to, 1+random.Int64N(30))
				if err != nil && !strings.Contains(err.Error(), "CHECK constraint") { // the balance is too small
					t.Errorf("the transfer from %s to %s failed: %v", from, to, err)
					return
				}
			}
		})
	}
	wg.Wait()
	sum := int64(0)
	if err := db.QueryRow(`SELECT sum(balance) FROM accounts`).Scan(&sum); err != nil || sum != 300 {
		t.Errorf("the sum of all accounts is %d, %v; want 300", sum, err)
	}
}

// A transfer by a holder that has lost its locks, or one of them, changes neither account.
func TestLateTransferChangesNeitherAccount(t *testing.T) {
	_, db := accounts(t, "a", "b")
	_, urls := testmasters.Start(t, 3)
	l := testmasters.Locker(t, urls)
	ctx := t.Context()
	names := []string{"account:a", "account:b"}
	late, err := l.LockAll(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	old := []int64{late.Of(names[0]).Token(), late.Of(names[1]).Token()}
	if err := late.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := transfer(ctx, l, db, "b", "a", 10); err != nil {
		t.Fatal(err)
	}
	if err := move(ctx, db, "a", "b", 50, old[0], old[1]); !errors.Is(err, errFenced) {
		t.Errorf("the late transfer returned %v, want errFenced", err)
	}
	// One current token and one late token are not enough.
	if err := move(ctx, db, "a", "b", 50, old[0]+1_000_000_000, old[1]); !errors.Is(err, errFenced) {
		t.Errorf("the transfer with one late token returned %v, want errFenced", err)
	}
	var a, b int64
	err = db.QueryRow(`SELECT (SELECT balance FROM accounts WHERE name = 'a'),
		(SELECT balance FROM accounts WHERE name = 'b')`).
		Scan(&a, &b)
	if err != nil || a != 110 || b != 90 {
		t.Errorf("the balances are %d and %d, %v; want 110 and 90", a, b, err)
	}
}

func TestProgram(t *testing.T) {
	path, db := accounts(t, "a", "b")
	_, urls := testmasters.Start(t, 3)
	if err := run(t.Context(), append([]string{path, "a", "b", "40"}, urls...)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {path, "a", "b", "-1", urls[0]}, append([]string{path, "a", "b", "500"}, urls...),
		append([]string{path, "a", "nobody", "5"}, urls...), append([]string{path, "a", "a", "5"}, urls...)} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("the program returned no error for the arguments %q", args)
		}
	}
	var text string
	err := db.QueryRow(`SELECT group_concat(name || balance) FROM accounts`).Scan(&text)
	if want := "a60,b140"; text != want || err != nil {
		t.Errorf("the balances are %s, %v; want %s", text, err, want)
	}
}

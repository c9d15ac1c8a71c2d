package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// inMemory runs test with a Locker over five masters in memory, in virtual time.
func inMemory(t *testing.T, test func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 5, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		test(t, masters, locker)
	})
}

func TestEachOrderIsPaidByOne(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		var tokens []int64
		h := &Handler{Locker: locker, Pay: func(_ context.Context, _ string, token int64) error {
			tokens = append(tokens, token)
			return nil
		}}
		if status := ask(h); status != http.StatusOK {
			t.Errorf("the status is %d, want %d", status, http.StatusOK)
		}
		masters.Take("orders:42", time.Minute) // another server is paying the order
		if status := ask(h); status != http.StatusConflict {
			t.Errorf("the status is %d, want %d", status, http.StatusConflict)
		}
		masters.Free("orders:42")
		if status := ask(h); status != http.StatusOK {
			t.Errorf("the status is %d, want %d", status, http.StatusOK)
		}
		masters.Master(0).Stop()
		masters.Master(1).Hang() // two of five fail, so a majority remains
		if status := ask(h); status != http.StatusOK {
			t.Errorf("the status is %d, want %d", status, http.StatusOK)
		}
		masters.Master(2).Hang()
		if status := ask(h); status != http.StatusServiceUnavailable {
			t.Errorf("the status is %d, want %d", status, http.StatusServiceUnavailable)
		}
		if len(tokens) != 3 || tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Errorf("the tokens are %d, want three increasing tokens", tokens)
		}
	})
}

// A server that is shutting down does not pay, and its response says that the client may retry on another server.
func TestClosingServerRefusesPayments(t *testing.T) {
	inMemory(t, func(t *testing.T, _ *redlocktest.Masters, locker *redlock.Locker) {
		if err := locker.Close(); err != nil {
			t.Fatal(err)
		}
		if status := ask(&Handler{Locker: locker}); status != http.StatusServiceUnavailable {
			t.Errorf("the status is %d, want %d", status, http.StatusServiceUnavailable)
		}
	})
}

func TestPayingStopsWhenTheLockIsLost(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		h := &Handler{Locker: locker, Pay: func(ctx context.Context, order string, _ int64) error {
			masters.Lose("orders:" + order)
			<-ctx.Done()
			return ctx.Err()
		}}
		if status := ask(h); status != http.StatusInternalServerError {
			t.Errorf("the status is %d, want %d", status, http.StatusInternalServerError)
		}
	})
}

// If a master restarts empty, the lock is still held, and the master votes again after its quarantine.
func TestPayingContinuesDuringRestart(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		h := &Handler{Locker: locker, Pay: func(ctx context.Context, _ string, _ int64) error {
			masters.Master(0).Restart(false)
			time.Sleep(time.Minute)
			return ctx.Err()
		}}
		if status := ask(h); status != http.StatusOK {
			t.Errorf("the status is %d, want %d", status, http.StatusOK)
		}
		if m := admin.Of(locker).Masters()[0]; m.State != "voting" {
			t.Errorf("a minute after its restart the master is %s: %v", m.State, m.Err)
		}
	})
}

// ask makes the handler pay order 42, and returns the status.
func ask(h http.Handler) int {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}", h)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	return w.Code
}
